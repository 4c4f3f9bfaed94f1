"""How long a server may be away: one that was killed is followed by another within a second or two."""

import time

import grpc

from tidegate.client import answers

PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 0.1
"""Between two tries."""


class Patience:
    """Decides whether to ask again. What is not ``repeatable`` is asked again only if it was never sent."""

    def __init__(self, seconds: float, *, repeatable: bool) -> None:
        self._seconds, self._repeatable = seconds, repeatable
        self._until: float | None = None

    def lasts(self, error: grpc.RpcError) -> bool:
        """Whether the server may be there again soon; counted from the first time that it was not."""
        if not (answers.is_away(error) and (self._repeatable or answers.was_not_sent(error))):
            return False
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
        return now < self._until
