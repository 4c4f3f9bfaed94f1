"""What a built-in controller wants to have done, gathered while it looks at one object."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kube import Key, Manifest, Mutation, Object, Store, Verb, key_of
from kube.priority_classes import priority_fields

_SAID = ("status", "reason", "message", "lastUpdateTime")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 58


@dataclass(slots=True)
class Names:
    """Names for what is made: derived from the maker's uid, the time and a count, so that the same history makes the same.

    A name that is taken is passed over, and one that was free a moment ago is not given again.
    """

    store: Store
    _counts: dict[str, int] = field(default_factory=dict)

    def fresh(self, kind: str, maker: Object, prefix: str, now: int) -> str:
        """``<prefix>-<five letters>``, a name that no object of ``kind`` in the maker's namespace has."""
        while True:
            count = self._counts[maker.uid] = self._counts.get(maker.uid, 0) + 1
            name = f"{prefix[: _LONGEST_PREFIX - 1]}-{letters(f'{maker.uid}/{now}/{count}', 5)}"
            if self.store.get(Key(kind, maker.namespace, name)) is None:
                return name

    def forget(self, uid: str) -> None:
        """The maker is gone."""
        self._counts.pop(uid, None)


@dataclass(slots=True)
class Work:
    """The changes that are wanted at ``now`` (ms since the epoch), and when to look again without anything happening."""

    store: Store
    names: Names
    now: int
    mutations: list[Mutation] = field(default_factory=list)
    due: int | None = None
    _specs: dict[int, tuple[Manifest, Manifest]] = field(default_factory=dict)
    """What pods are made of, and the same with the priority of their class, by its identity: pods of one template share one."""

    def look_again(self, at: int) -> None:
        """Come back at ``at`` at the latest."""
        self.due = at if self.due is None else min(self.due, at)

    def create(self, manifest: Manifest) -> None:
        """Make it. A pod gets what its priority class says, which an API server would fill in."""
        if manifest["kind"] == "Pod":
            manifest["spec"] = self._prioritized(manifest["spec"])
        self.mutations.append(Mutation(Verb.CREATE, key_of(manifest), manifest=manifest))

    def _prioritized(self, spec: Manifest) -> Manifest:
        known = self._specs.get(id(spec))
        if known is None:
            fields = priority_fields(spec, self.store)
            known = self._specs[id(spec)] = (spec, {**spec, **fields} if fields else spec)
        return known[1]

    def delete(self, item: Object) -> None:
        """Delete ``item``, unless that is under way."""
        if not item.deleting:
            self.mutations.append(Mutation(Verb.DELETE, item.key, item.uid))

    def end(self, item: Object) -> None:
        """Nothing holds the deleted ``item`` any more."""
        self.mutations.append(Mutation(Verb.DELETE, item.key, item.uid))

    def patch(self, item: Object, patch: Manifest) -> None:
        self.mutations.append(Mutation(Verb.PATCH, item.key, item.uid, patch=patch))

    def status(self, item: Object, wanted: Manifest) -> None:
        """Bring the named fields of the status to what is wanted; None removes one. Does nothing when they are so already."""
        patch = {name: value for name, value in wanted.items() if item.status.get(name) != value}
        if patch:
            self.mutations.append(Mutation(Verb.STATUS, item.key, item.uid, patch=patch))

    def pods_of(self, owner: Object) -> list[Object]:
        """The pods that ``owner`` controls, by name."""
        return [item for item in self.store.owned_by(owner.uid) if item.kind == "Pod" and controls(owner, item)]


def letters(text: str, count: int) -> str:
    """``count`` letters that ``text`` determines: none of them vowels, so that no words come out."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
    found = []
    for _ in range(count):
        number, index = divmod(number, len(_LETTERS))
        found.append(_LETTERS[index])
    return "".join(found)


def controls(owner: Object, item: Object) -> bool:
    """Whether ``owner`` is the controller of ``item``."""
    controller = item.controller
    return controller is not None and controller.get("uid") == owner.uid


def whole(value: Any, default: int) -> int:
    """A whole number of a manifest; ``default`` where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def share_of(value: Any, total: int, *, up: bool) -> int:
    """An int-or-percent such as ``3`` or ``"25%"`` of ``total``, percentages rounded ``up`` or down; 0 when it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value or "").removesuffix("%")
    if not text.isdigit():
        return 0
    parts = int(text) * total
    return -(-parts // 100) if up else parts // 100


def condition_of(status: Manifest, name: str) -> Manifest | None:
    """The condition of type ``name``; None when the status has none."""
    found: Iterator[Manifest] = (item for item in status.get("conditions") or () if item.get("type") == name)
    return next(found, None)


def with_conditions(status: Manifest, *wanted: Manifest) -> list[Manifest]:
    """The conditions of ``status`` with the wanted ones in place.

    One that says the same as before stays as it is, and one of the same status keeps its transition time.
    """
    result: list[Manifest] = list(status.get("conditions") or ())
    for condition in wanted:
        before = condition_of(status, str(condition["type"]))
        if before is None:
            result.append(condition)
        elif any(before.get(name) != condition.get(name) for name in _SAID):
            result[result.index(before)] = {**before, **condition} | _kept_times(before, condition)
    return result


def _kept_times(before: Manifest, condition: Manifest) -> Manifest:
    same = before.get("status") == condition.get("status")
    return {"lastTransitionTime": before["lastTransitionTime"]} if same and "lastTransitionTime" in before else {}
