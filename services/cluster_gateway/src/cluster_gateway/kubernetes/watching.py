"""The watches of all kinds that the cluster has, and a look now and then at whether it has more of them, or fewer.

A server that starts may not know yet of all kinds that it has, so what is missing is believed only to one that says that it is
ready. A kind that we may not see, but saw before, is followed again as soon as we may: its objects are still there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from apiserver.api import Api, Refused, Unreachable
from cluster_gateway.kubernetes.discovery import Served, discover
from cluster_gateway.kubernetes.reflector import BeganAnew, KindIsGone, Listed, Reflector, Seen

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""A CustomResourceDefinition that is installed later is seen after this time."""
PAUSE = 1.0
READY = "/readyz"
UNKNOWN = (403, 404)
"""Answers of a server that does not tell us whether it is ready: it answers, so it is taken to be."""


@dataclass(slots=True)
class Watching:
    """``kinds`` are followed as far as the cluster has them; ``versions`` says from where each goes on.

    ``gone`` hears of a kind that the cluster has no more, ``looked`` when it was looked which there are.
    """

    api: Api
    kinds: frozenset[str]
    hand_on: Callable[[Seen], Awaitable[None]]
    gone: Callable[[str], None]
    looked: Callable[[], None]
    versions: dict[str, int] = field(default_factory=dict)
    served: dict[str, Served] = field(default_factory=dict)
    _watches: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    _heard: set[str] = field(default_factory=set)
    _left_out: dict[str, str] = field(default_factory=dict)
    """Why a kind is not followed though the cluster has it."""
    _looked: bool = False
    _look_now: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def complete(self) -> bool:
        """Whether all that the cluster has is known: each kind was listed, or its watch goes on from where it was."""
        return self._looked and self._heard >= self.served.keys()

    async def run(self) -> None:
        """Watch for ever."""
        try:
            while True:
                self._look_now.clear()
                if await self._look():
                    await self._pause(LOOK_SECONDS)
                else:
                    await asyncio.sleep(PAUSE)
        finally:
            for watch in self._watches.values():
                watch.cancel()
            await asyncio.gather(*self._watches.values(), return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._look_now.wait()
                await asyncio.sleep(PAUSE)
        except TimeoutError:
            pass

    async def _look(self) -> bool:
        try:
            ready = await self.api.get(READY)
            if not ready.ok and ready.code not in UNKNOWN:
                log.warning("server_not_ready", extra={"detail": ready.message})
                return False
            found = await discover(self.api, self.kinds)
        except (Unreachable, Refused) as error:
            log.warning("discovery_failed", extra={"detail": str(error)})
            return False
        for kind in sorted((self.served.keys() | self.versions.keys()) - found.keys()):
            self._drop(kind)
        for kind, served in found.items():
            if kind not in self.served:
                self._start(kind, served)
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

    async def _heard_of(self, seen: Seen) -> None:
        if isinstance(seen, BeganAnew):
            self._heard.discard(seen.kind)
        await self.hand_on(seen)
        if isinstance(seen, Listed):
            self._heard.add(seen.kind)
            self._left_out.pop(seen.kind, None)
            self.looked()

    async def _follow(self, reflector: Reflector, kind: str) -> None:
        try:
            await reflector.run()
        except KindIsGone as gone:
            self._leave_out(kind, reflector.version, str(gone))

    def _leave_out(self, kind: str, version: int, why: str) -> None:
        """Do without a kind until it is looked again whether it is there, and go on from ``version`` then."""
        if self._left_out.get(kind) != why:
            log.warning("kind_left_out", extra={"kind": kind, "detail": why})
            self._look_now.set()
        self._left_out[kind] = why
        self.served.pop(kind, None)
        self._watches.pop(kind, None)
        self.versions[kind] = version
        self.looked()

    def _drop(self, kind: str) -> None:
        """Forget a kind that the cluster has no more."""
        log.warning("kind_gone", extra={"kind": kind, "detail": self._left_out.pop(kind, "it is not served any more")})
        self.served.pop(kind, None)
        self.versions.pop(kind, None)
        self._heard.discard(kind)
        watch = self._watches.pop(kind, None)
        if watch is not None:
            watch.cancel()
        self.gone(kind)
