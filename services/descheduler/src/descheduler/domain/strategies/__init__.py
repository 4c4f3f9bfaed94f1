"""What else should move: pods where they may not be, or should not be any more."""
