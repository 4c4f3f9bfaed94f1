"""Python's search for cyclic garbage, kept away from where there is none to find."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """While millions of parts are loaded: looking through them again and again would take most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def keep_all() -> None:
    """What there is now stays: it is not looked through any more. It is still freed when nobody refers to it."""
    gc.freeze()
