"""What becomes of the parts when the supervisor itself is killed: none of them goes on without it."""

import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, number: signal.Signals) -> None:
    """Called between fork and exec: let the kernel send ``number`` to this process when ``parent`` ends.

    Two systems on one data folder would write to the same files: the next `tidegate up` must find nobody there.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before the kernel had been told
        os.kill(os.getpid(), number)
