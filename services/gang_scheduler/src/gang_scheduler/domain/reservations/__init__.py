"""Room that is reserved for owners who come later."""
