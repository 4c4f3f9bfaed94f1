"""What an API server has of one kind, as it changes: a list, then a watch from where the list was made.

A watch that breaks goes on from the last version that was seen; one that is too old (410) begins with a list again, and whoever
takes lists finds out what is gone by comparing: nothing is taken for deleted that the server did not leave out, and nothing
deleted is overlooked. Versions are numbers that grow (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson

from apiserver.api import Api, Refused, Unreachable
from cluster_gateway.kubernetes.discovery import Served
from kube import Manifest

log = logging.getLogger(__name__)

GONE = 410
UNSERVED = (403, 404)
"""The kind is not there, or not for us."""
PAGE = 5_000
WATCH_SECONDS = 600
"""How long one watch lasts; bookmarks come about once a minute."""
SILENCE_SECONDS = 180.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects of a kind as of ``version``."""

    kind: str
    version: int
    items: list[Manifest]


@dataclass(frozen=True, slots=True)
class Watched:
    """Changes of objects of one kind, in their order: whether each is gone, and the object. ``version`` is behind them all."""

    kind: str
    version: int
    changes: list[tuple[bool, Manifest]]


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
    hand_on: Callable[[Listed | Watched], Awaitable[None]]
    version: int = 0

    async def run(self) -> None:
        """List and watch. Raises KindIsGone."""
        pause = FIRST_PAUSE
        while True:
            try:
                if not self.version:
                    await self._list()
                await self._watch()
                pause = FIRST_PAUSE
                continue
            except _TooOld:
                self.version = 0
                continue
            except Refused as refused:
                if refused.answer.code in UNSERVED:
                    raise KindIsGone(f"{self.served.info.id}: {refused}") from refused
                if refused.answer.code == GONE:
                    self.version = 0
                    continue
                log.warning("watch_refused", extra={"kind": self.served.info.id, "detail": str(refused)})
            except Unreachable as error:
                log.warning("watch_broken", extra={"kind": self.served.info.id, "detail": str(error)})
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _list(self) -> None:
        items: list[Manifest] = []
        parameters = {"limit": str(PAGE)}
        while True:
            answer = await self.api.get(self.served.collection, parameters)
            if not answer.ok:
                raise Refused(answer)
            items += answer.body.get("items") or ()
            metadata = answer.body["metadata"]
            if not metadata.get("continue"):
                break
            parameters["continue"] = metadata["continue"]
        version = int(metadata["resourceVersion"])
        await self.hand_on(Listed(self.served.info.id, version, items))
        self.version = version

    async def _watch(self) -> None:
        parameters = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self.version),
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async for lines in self.api.lines(self.served.collection, parameters, SILENCE_SECONDS):
            changes: list[tuple[bool, Manifest]] = []
            version = self.version
            for line in lines:
                if line:
                    version = self._read(orjson.loads(line), changes, version)
            if changes or version != self.version:
                await self.hand_on(Watched(self.served.info.id, version, changes))
                self.version = version

    def _read(self, event: Manifest, changes: list[tuple[bool, Manifest]], version: int) -> int:
        what, item = event["type"], event["object"]
        if what == "ERROR":
            if item.get("code") == GONE:
                raise _TooOld
            raise Unreachable(f"the watch of {self.served.info.id} ended: {item.get('message')}")
        if what != "BOOKMARK":
            changes.append((what == "DELETED", item))
        return int(item["metadata"]["resourceVersion"])
