"""``tidegate whatif`` and ``tidegate replay``: the services themselves, in virtual time, on a snapshot."""
