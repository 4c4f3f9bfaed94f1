"""Who waits, for what room, and how long one may be passed over."""
