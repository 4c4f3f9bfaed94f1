"""What an API server has of one kind, as it changes: a list, then a watch from where the list was made.

A watch that breaks goes on from the last version that was seen; one that is too old (410) begins with a list again, and whoever
takes lists finds out what is gone by comparing: nothing is taken for deleted that the server did not leave out, and nothing
deleted is overlooked. Versions are numbers that grow (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions).
Only a store that was put back to an older state has smaller ones. A server does not refuse to watch from a version that it has
not reached, so it is asked for its version each time that a watch begins; where that went back everything is listed anew.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import orjson

from apiserver.api import Answer, Api, Refused, Unreachable
from cluster_gateway.domain.mirror import key_of
from cluster_gateway.kubernetes.discovery import Served
from kube import Key, Manifest

log = logging.getLogger(__name__)

FORBIDDEN, NOT_FOUND, GONE = 403, 404, 410
PAGE = 500
"""Objects of a list that are held at one time."""
WATCH_SECONDS = 600
"""How long one watch lasts; bookmarks come about once a minute."""
SILENCE_SECONDS = 180.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0


@dataclass(frozen=True, slots=True)
class Listed:
    """The end of a list: ``there`` is all that the server has of a kind as of ``version``, and was handed on as changes."""

    kind: str
    version: int
    there: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Watched:
    """Changes of objects of one kind, in their order: whether each is gone, and the object. ``version`` is behind them all.

    It is 0 while a list goes on: who begins again after a part of a list begins with the list.
    """

    kind: str
    version: int
    changes: list[tuple[bool, Manifest]]


@dataclass(frozen=True, slots=True)
class BeganAnew:
    """The server's versions of a kind went back: what was seen before says nothing about what is newer. A list follows."""

    kind: str


Seen = Listed | Watched | BeganAnew


class KindIsGone(Exception):
    """The cluster does not serve the kind any more, or not to us; the text says why."""


class _TooOld(Exception):
    """The server does not remember what happened since the version that was asked for."""


@dataclass(slots=True)
class Reflector:
    """Follows one kind for ever. ``version`` is that of the last change that was handed on, 0 for none.

    ``hand_on`` returns when what it was given was taken in: until then nothing more is read, and the server waits.
    """

    api: Api
    served: Served
    hand_on: Callable[[Seen], Awaitable[None]]
    version: int = 0

    async def run(self) -> None:
        """List and watch. Raises KindIsGone."""
        pause = FIRST_PAUSE
        while True:
            try:
                if self.version:
                    await self._check_version()
                if not self.version:
                    await self._list()
                await self._watch()
                pause = FIRST_PAUSE
                continue
            except _TooOld:
                self._forgotten("the watch ended")
                continue
            except Refused as refused:
                if refused.answer.code == GONE:
                    self._forgotten(str(refused))
                    continue
                if self._is_out_of_reach(refused.answer):
                    raise KindIsGone(f"{self.served.info.id}: {refused}") from refused
                log.warning("watch_refused", extra={"kind": self.served.info.id, "detail": str(refused)})
            except Unreachable as error:
                log.warning("watch_broken", extra={"kind": self.served.info.id, "detail": str(error)})
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _forgotten(self, why: str) -> None:
        """The server has forgotten the version: list again."""
        log.info("watch_too_old", extra={"kind": self.served.info.id, "version": self.version, "detail": why})
        self.version = 0

    def _is_out_of_reach(self, answer: Answer) -> bool:
        """Whether the kind is not there. What was seen of a kind that we may not see any more is still there."""
        return answer.code == NOT_FOUND or (answer.code == FORBIDDEN and not self.version)

    async def _check_version(self) -> None:
        """Find out whether the server is behind what it has told already."""
        answer = await self.api.get(self.served.collection, {"limit": "1"})
        if not answer.ok:
            raise Refused(answer)
        now = int(answer.body["metadata"]["resourceVersion"])
        if now < self.version:
            log.error("versions_went_back", extra={"kind": self.served.info.id, "seen": self.version, "now": now})
            await self.hand_on(BeganAnew(self.served.info.id))
            self.version = 0

    async def _list(self) -> None:
        kind, there = self.served.info.id, set[Key]()
        parameters = {"limit": str(PAGE)}
        while True:
            answer = await self.api.get(self.served.collection, parameters)
            if not answer.ok:
                raise Refused(answer)
            items, metadata = answer.body.get("items") or (), answer.body["metadata"]
            if items:
                there.update(key_of(kind, item) for item in items)
                await self.hand_on(Watched(kind, 0, [(False, item) for item in items]))
            if not metadata.get("continue"):
                break
            parameters["continue"] = metadata["continue"]
        version = int(metadata["resourceVersion"])
        await self.hand_on(Listed(kind, version, frozenset(there)))
        self.version = version

    async def _watch(self) -> None:
        parameters = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self.version),
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with aclosing(self.api.lines(self.served.collection, parameters, SILENCE_SECONDS)) as stream:
            async for lines in stream:
                await self._take(lines)

    async def _take(self, lines: list[bytes]) -> None:
        """Hand on what has come."""
        changes: list[tuple[bool, Manifest]] = []
        version = self.version
        for line in lines:
            if line:
                version = self._read(line, changes, version)
        if changes or version != self.version:
            await self.hand_on(Watched(self.served.info.id, version, changes))
            self.version = version

    def _read(self, line: bytes, changes: list[tuple[bool, Manifest]], version: int) -> int:
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"the watch of {self.served.info.id} was garbled: {error}") from error
        what, item = event["type"], event["object"]
        if what == "ERROR":
            if item.get("code") == GONE:
                raise _TooOld
            raise Unreachable(f"the watch of {self.served.info.id} ended: {item.get('message')}")
        if what != "BOOKMARK":
            changes.append((what == "DELETED", item))
        return int(item["metadata"]["resourceVersion"])
