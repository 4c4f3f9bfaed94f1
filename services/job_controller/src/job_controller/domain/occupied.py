"""Names that are taken: what a job is to make cannot be made while somebody else's object has its name.

Most often it is a pod of a job of the same name that was deleted a moment ago and still ends. The job waits until it is gone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kube import Decision, Event, Key, Object, Store, Verb


def taken_names(decision: Decision, store: Store) -> dict[Key, str]:
    """What stands in the way of the objects that ``decision`` makes, in words, by their keys."""
    found = {}
    for mutation in decision.mutations:
        there = store.get(mutation.key) if mutation.verb is Verb.CREATE else None
        if there is not None:
            found[there.key] = _hindrance(there, decision.subject_uid)
    return found


def _hindrance(there: Object, uid: str) -> str:
    what = f"{there.kind} {there.name}"
    if there.deleting:
        return f"{what} is still being deleted"
    if uid in [owner.get("uid") for owner in there.metadata.get("ownerReferences") or ()]:
        # Seen as its own it would not be made: made "again" it would change nothing, over and over.
        return f"{what} is there already, but its labels are not those of the job's; delete it"
    owner = there.controller
    of = f"belongs to {owner.get('kind')} {owner.get('name')}" if owner else "belongs to nobody"
    return f"{what} is there already and {of}; delete it, or name the job otherwise"


@dataclass(slots=True)
class Occupied:
    """The jobs that wait for a name to become free."""

    words: dict[Key, str] = field(default_factory=dict)
    """Job → what it waits for."""
    _waiting: dict[Key, dict[Key, None]] = field(default_factory=dict)

    def wait(self, job: Key, taken: dict[Key, str]) -> str:
        """The job waits until these names are free; returns what for, in words."""
        for key in taken:
            self._waiting.setdefault(key, {})[job] = None
        self.words[job] = "; ".join(taken.values())
        return self.words[job]

    def freed_by(self, event: Event) -> Iterable[Key]:
        """The jobs that may go on."""
        if event.new is None or (event.old is not None and event.old.uid != event.new.uid):
            return self._waiting.pop(event.key, ())
        return ()

    def forget(self, job: Key) -> None:
        """The job waits for no name, or is gone."""
        self.words.pop(job, None)
