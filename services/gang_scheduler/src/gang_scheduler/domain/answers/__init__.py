"""Words for people: why something waits, what would help, and when."""
