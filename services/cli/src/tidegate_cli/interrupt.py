"""Ctrl-C ends a command, wherever it is."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tidegate_cli.failures import INTERRUPTED

PATIENCE_SECONDS = 1.0


@contextmanager
def interruptible() -> Iterator[None]:
    """While inside, SIGINT raises KeyboardInterrupt, and ends the process where that gets lost.

    It does where the signal meets code whose exceptions Python cannot pass on, such as a callback from gRPC's own threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(*_: object) -> None:
        last = threading.Timer(PATIENCE_SECONDS, os._exit, (INTERRUPTED,))
        last.daemon = True
        last.start()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
