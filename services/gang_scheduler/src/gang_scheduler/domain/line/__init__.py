"""Who waits, whose turn it is, and how long one may be passed over."""
