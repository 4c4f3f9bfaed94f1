"""What came of the decisions of one commit is told together where they end at about the same time.

Who decided them decided them at one moment: gangs that were let in together are known to be so together, and not the first of
them alone. On an API server each is a request of its own, so those that end first wait a moment for the others.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster_gateway.kubernetes.carrier import Carried

MOMENT_SECONDS = 0.05


@dataclass(slots=True)
class _Open:
    """A commit of which so many decisions are on their way, and what came of those that wait for them."""

    left: int
    ended: list[Carried] = field(default_factory=list)


@dataclass(slots=True)
class Together:
    """``tell`` hears of each decision, all at once of those of one commit that end within a moment."""

    tell: Callable[[Carried], None]
    _open: dict[tuple[str, int], _Open] = field(default_factory=dict)
    _fresh: dict[tuple[str, int], asyncio.Event] = field(default_factory=dict)
    """Commits of several decisions that began within the last moment: set when they have ended."""

    def began(self, service: str, sequence: int, count: int) -> None:
        """So many decisions of a commit are on their way."""
        commit = service, sequence
        self._open[commit] = _Open(count)
        if count > 1:
            self._fresh[commit] = asyncio.Event()
            asyncio.get_running_loop().call_later(MOMENT_SECONDS, self._age, commit)

    async def settle(self) -> None:
        """Wait a moment at the most for those of one commit that are on their way: watches tell of them one by one."""
        for event in list(self._fresh.values()):
            await event.wait()

    def ended(self, carried: Carried) -> None:
        """One of them came to its end."""
        commit = carried.service, carried.sequence
        found = self._open[commit]
        found.left -= 1
        found.ended.append(carried)
        if not found.left:
            self._tell(commit)
        elif len(found.ended) == 1:
            asyncio.get_running_loop().call_later(MOMENT_SECONDS, self._tell, commit)

    def _tell(self, commit: tuple[str, int]) -> None:
        found = self._open.get(commit)
        if found is None:
            return
        if not found.left:
            del self._open[commit]
            self._age(commit)
        told, found.ended = found.ended, []
        for carried in told:
            self.tell(carried)

    def _age(self, commit: tuple[str, int]) -> None:
        """Nobody waits for it any more."""
        event = self._fresh.pop(commit, None)
        if event is not None:
            event.set()
