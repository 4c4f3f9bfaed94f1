"""The real experiment of co-location: an online service and batch work on this machine, side by side."""
