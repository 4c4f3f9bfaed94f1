"""Tries again what broke off, with growing pauses, as long as there is something to gain."""

import sys
import time
from collections.abc import Callable

from storage_initializer.failures import FetchError, Interrupted

TRIES = 6
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 20.0


def insist(fetch: Callable[[], None], what: str, progress: Callable[[], int]) -> None:
    """Call ``fetch`` until it comes to an end; Interrupted is answered with another try.

    Tries are counted anew whenever ``progress`` (bytes there so far) has grown: a slow, often broken line comes through.
    Raises FetchError when ``TRIES`` in a row brought nothing.
    """
    pause, tried, had = FIRST_PAUSE_SECONDS, 0, progress()
    while True:
        try:
            fetch()
            return
        except Interrupted as error:
            now = progress()
            if now > had:
                pause, tried, had = FIRST_PAUSE_SECONDS, 0, now
            tried += 1
            if tried == TRIES:
                raise FetchError(f"{what}: {error} ({TRIES} tries)") from None
            print(f"{what}: {error}; {now} bytes are here; again in {pause:g} s", file=sys.stderr)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
