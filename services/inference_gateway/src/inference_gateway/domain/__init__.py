"""The functional core: who serves what, who is ready, and what the proxy is to be told."""
