"""Who goes next, and what comes of it: placed, evicted for, or room kept."""
