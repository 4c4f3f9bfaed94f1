"""What Envoy is to be told, as plain data in the words of its v3 API."""
