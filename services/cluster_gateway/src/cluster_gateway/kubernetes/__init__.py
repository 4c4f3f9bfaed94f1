"""The driver `kubernetes`: a cluster whose objects an API server keeps."""
