"""How a process whose state is large and lives long keeps its memory.

Vectors over 100,000 nodes are large enough that glibc gives each back to the system as soon as it is freed, and asks for
the next one anew: the faults of fresh pages then cost more than the arithmetic does.
"""

import ctypes
import gc

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt(3)."""

KEPT_BYTES = 64 << 20
LARGEST_BYTES = 32 << 20


def expect_large_state() -> None:
    """What such a process does once, when it starts."""
    # Nearly nothing of the state is in cycles: look for those seldom.
    gc.set_threshold(100_000, 50, 100)
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Keep up to 64 MiB of freed memory for what comes next, pieces of up to 32 MiB. Other C libraries go their own way."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        library.mallopt(_MMAP_THRESHOLD, LARGEST_BYTES)
