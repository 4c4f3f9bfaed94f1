"""How memory is given back: the C library's allocator keeps what large vectors leave, cycles are looked for seldom.

Vectors over 100,000 nodes are large enough that glibc gives each back to the system as soon as it is freed, and asks for
the next one anew: the faults of fresh pages then cost more than the arithmetic does.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt(3)."""

KEPT_BYTES = 64 << 20
LARGEST_BYTES = 32 << 20


def keep_freed_memory() -> None:
    """Keep up to 64 MiB of freed memory for what comes next, pieces of up to 32 MiB. Other C libraries go their own way."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        library.mallopt(_MMAP_THRESHOLD, LARGEST_BYTES)
