"""Commits that can be found again: those of which only the newest counts have a topic in the log."""

from collections.abc import Iterable

from bus import Entry, Log

ENTITLEMENTS = "entitlements"
STATE = "state"
"""Commits that carry private state."""

BY_DECISION = {"EntitlementsComputed": ENTITLEMENTS}
"""Decisions of which a reader that starts later needs only the newest."""

_BOTH = f"{ENTITLEMENTS}-{STATE}"
_FOUND_UNDER = {ENTITLEMENTS: (ENTITLEMENTS, _BOTH), STATE: (STATE, _BOTH)}


def topic_of(decisions: Iterable[str], *, with_state: bool) -> str:
    """The topic of a commit with decisions of these names; "" for none."""
    topics = {BY_DECISION[name] for name in decisions if name in BY_DECISION} | ({STATE} if with_state else set())
    return "-".join(sorted(topics))


async def newest(log: Log, topic: str) -> Entry | None:
    """The newest commit that has ``topic``, alone or with others."""
    found = [entry for name in _FOUND_UNDER[topic] if (entry := await log.last_of(name)) is not None]
    return max(found, key=lambda entry: entry.sequence, default=None)


async def trim(log: Log, before: int) -> None:
    """Drop what is older than sequence ``before``, but nothing that is still the newest of its topic."""
    kept = [entry.sequence for topic in _FOUND_UNDER if (entry := await newest(log, topic)) is not None]
    await log.trim(min([before, *kept]))
