"""A watch that is taken up again where it broke off, as when the server restarts."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.client import Change, SyncClient

PAUSE_SECONDS = 1.0
TRIES = 20
"""How often in a row it is taken up again before it is given up."""
FIRST_TRIES = 5
"""The same before anything was seen."""
RESTARTED = "restarted"
"""The type of the change that says: what was seen so far does not count, all that there is comes again."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to watch. An empty namespace means all, an empty name every object."""

    kind: str
    namespace: str = ""
    name: str = ""
    labels: str = ""


def lasting_watch(client: "SyncClient", scope: Scope, deadline: float | None = None) -> "Iterator[Change]":
    """What there is, a bookmark, and what changes. A bookmark may come again; see RESTARTED, too.

    Raises TimedOut at ``deadline`` (of ``time.monotonic``), and Unavailable when the server does not come back.
    """
    from tidegate.client import Change, Expired, Unavailable

    revision, tries = 0, 0
    while True:
        try:
            for change in _watch(client, scope, revision, deadline):
                # What was there at the start has revisions in any order; the bookmark behind it counts.
                if revision or change.type == "bookmark":
                    revision = max(revision, change.revision)
                tries = 0
                yield change
            raise Unavailable("the server ended the watch")
        except Expired:
            revision = 0
            yield Change(RESTARTED, {}, 0)
        except Unavailable:
            tries += 1
            if tries > (TRIES if revision else FIRST_TRIES):
                raise
            time.sleep(PAUSE_SECONDS)


def _watch(client: "SyncClient", scope: Scope, revision: int, deadline: float | None) -> "Iterator[Change]":
    return client.watch(
        scope.kind,
        scope.namespace,
        name=scope.name,
        label_selector=scope.labels,
        from_revision=revision,
        timeout_seconds=None if deadline is None else max(0.01, deadline - time.monotonic()),
    )
