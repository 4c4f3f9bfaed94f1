"""The functional core of the service: pure, without bus, clock or I/O."""
