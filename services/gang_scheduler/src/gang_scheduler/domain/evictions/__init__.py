"""Who has to go, at least cost, so that somebody else can start."""
