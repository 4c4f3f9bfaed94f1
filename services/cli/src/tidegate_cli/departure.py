"""Waiting for deleted objects to be gone."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kube import Key, Manifest
from tidegate_cli.lasting_watch import RESTARTED, Scope, lasting_watch

if TYPE_CHECKING:
    from tidegate.client import SyncClient


@dataclass(frozen=True, slots=True)
class Leaving:
    """An object that is being deleted. One of the same name but another ``uid`` is another object; "" if not known."""

    key: Key
    uid: str = ""

    def is_seen_in(self, manifest: Manifest) -> bool:
        """Whether ``manifest`` is this very object."""
        metadata = manifest["metadata"]
        same = metadata["name"] == self.key.name and metadata.get("namespace", "") == self.key.namespace
        return same and (not self.uid or metadata.get("uid", self.uid) == self.uid)


def wait_until_gone(client: "SyncClient", leaving: Sequence[Leaving], timeout_seconds: float | None) -> list[Key]:
    """Return when all are gone, or when the time is over: with the keys of those that are still there."""
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    places = dict.fromkeys((one.key.kind, one.key.namespace) for one in leaving)
    left: list[Key] = []
    for kind, namespace in places:
        here = [one for one in leaving if (one.key.kind, one.key.namespace) == (kind, namespace)]
        left += _wait_in(client, Scope(kind, namespace, here[0].key.name if len(here) == 1 else ""), here, deadline)
    return left


def _wait_in(client: "SyncClient", scope: Scope, leaving: Sequence[Leaving], deadline: float | None) -> list[Key]:
    from tidegate.client import TimedOut

    waiting = {one.key.name: one for one in leaving}
    there: set[str] = set()
    try:
        for change in lasting_watch(client, scope, deadline):
            if change.type == RESTARTED:
                there.clear()
            elif change.type == "bookmark":
                waiting = {name: one for name, one in waiting.items() if name in there}
            else:
                _note(change.type, change.manifest, waiting, there)
            if not waiting:
                return []
    except TimedOut:
        pass
    return [one.key for one in waiting.values()]


def _note(kind_of_change: str, manifest: Manifest, waiting: dict[str, Leaving], there: set[str]) -> None:
    """Take in one change: what is deleted, or has made room for another of its name, is gone."""
    name = manifest["metadata"]["name"]
    one = waiting.get(name)
    if one is None:
        return
    if kind_of_change == "deleted" or not one.is_seen_in(manifest):
        del waiting[name]
    else:
        there.add(name)
