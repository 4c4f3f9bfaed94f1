"""What goes wrong again and again is told once, and ends nobody: a node whose pods nobody looks after is worse off."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)


class Trouble:
    """One piece of work that is done every now and then; ``event`` is told when it fails in another way than the last time."""

    def __init__(self, event: str) -> None:
        self._event, self._known = event, ""

    @contextmanager
    def contained(self) -> Iterator[None]:
        """Whatever goes wrong in here is told, and goes no further."""
        try:
            yield
        except Exception as error:
            if repr(error) != self._known:
                self._known = repr(error)
                _log.exception(self._event)
        else:
            self._known = ""
