"""Which parts yield when the machine has too little for all of them."""

import os
from contextlib import suppress
from pathlib import Path

_SESSION = Path("/proc/self/autogroup")

NICENESS = {"descheduler": 5, "slo_controller": 5}
"""Nobody waits for the next word of these: what they plan by is looked at once in many seconds. They get a third of what one
gets that somebody waits for, and all that is left over."""


def yield_to_others(niceness: int) -> None:
    """Called between fork and exec, in a session of its own: the process gets less than its even share by ``niceness``.

    Where the kernel shares out by session first (autogroup), the session has to yield as well: a niceness counts within one only.
    """
    os.nice(niceness)
    with suppress(OSError):  # a kernel without autogroup, or one that does not let us
        _SESSION.write_text(str(niceness))
