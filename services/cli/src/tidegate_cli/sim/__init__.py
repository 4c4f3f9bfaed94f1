"""``tidegate sim``: run scenarios against the whole system in virtual time."""
