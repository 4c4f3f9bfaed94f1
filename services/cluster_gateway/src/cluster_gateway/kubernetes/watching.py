"""The watches of all kinds that the cluster has, and a look now and then at whether it has more of them, or fewer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from apiserver.api import Api, Refused, Unreachable
from cluster_gateway.kubernetes.discovery import Served, discover
from cluster_gateway.kubernetes.reflector import KindIsGone, Listed, Reflector, Watched

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""A CustomResourceDefinition that is installed later is seen after this time."""
PAUSE = 1.0


@dataclass(slots=True)
class Watching:
    """``kinds`` are followed as far as the cluster has them; ``versions`` says from where each goes on.

    ``gone`` hears of a kind that the cluster has no more, ``looked`` when it was looked which there are.
    """

    api: Api
    kinds: frozenset[str]
    hand_on: Callable[[Listed | Watched], Awaitable[None]]
    gone: Callable[[str], None]
    looked: Callable[[], None]
    versions: dict[str, int] = field(default_factory=dict)
    served: dict[str, Served] = field(default_factory=dict)
    _watches: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    _heard: set[str] = field(default_factory=set)
    _looked: bool = False

    @property
    def complete(self) -> bool:
        """Whether all that the cluster has is known: each kind was listed, or its watch goes on from where it was."""
        return self._looked and self._heard >= self.served.keys()

    async def run(self) -> None:
        """Watch for ever."""
        try:
            while True:
                await asyncio.sleep(LOOK_SECONDS if await self._look() else PAUSE)
        finally:
            for watch in self._watches.values():
                watch.cancel()
            await asyncio.gather(*self._watches.values(), return_exceptions=True)

    async def _look(self) -> bool:
        try:
            found = await discover(self.api, self.kinds)
        except (Unreachable, Refused) as error:
            log.warning("discovery_failed", extra={"detail": str(error)})
            return False
        for kind in sorted(self.served.keys() - found.keys()):
            self._drop(kind)
        for kind, served in found.items():
            if kind not in self.served:
                self._start(kind, served)
        if not self._looked:
            for kind in sorted(self.versions.keys() - found.keys()):
                self.gone(kind)
        self._looked = True
        self.looked()
        return True

    def _start(self, kind: str, served: Served) -> None:
        if served.prefix.rpartition("/")[2] != served.info.version:
            log.warning("other_version", extra={"kind": kind, "served": served.prefix, "wanted": served.info.version})
        self.served[kind] = served
        version = self.versions.get(kind, 0)
        if version:
            self._heard.add(kind)
        reflector = Reflector(self.api, served, self._heard_of, version)
        self._watches[kind] = asyncio.create_task(self._follow(reflector, kind), name=f"watch {kind}")

    async def _heard_of(self, seen: Listed | Watched) -> None:
        self._heard.add(seen.kind)
        await self.hand_on(seen)

    async def _follow(self, reflector: Reflector, kind: str) -> None:
        try:
            await reflector.run()
        except KindIsGone as gone:
            self._drop(kind, str(gone))

    def _drop(self, kind: str, why: str = "") -> None:
        """Forget a kind; it is looked for again at the next look."""
        log.warning("kind_gone", extra={"kind": kind, "detail": why})
        self.served.pop(kind, None)
        self.versions.pop(kind, None)
        watch = self._watches.pop(kind, None)
        if watch is not None and watch is not asyncio.current_task():
            watch.cancel()
        self.gone(kind)
        self.looked()
