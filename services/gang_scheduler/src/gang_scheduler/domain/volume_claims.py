"""The volumes that pods claim: where each can be, and which claim takes which volume.

The plain rules are those of Kubernetes. A bound claim is where its volume is. A claim of a class that waits for its first
consumer is bound on the node chosen: to the smallest volume there that nobody has, or to one that is made for it. Any other
claim has to be bound before its pods can go anywhere. What pods on trial would bind is on these books too, and goes with them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gang_scheduler.domain.filters import term_mask
from gang_scheduler.domain.node_rules import NodeTerm, node_term
from gang_scheduler.domain.node_table import NodeTable
from gang_scheduler.domain.selectors import label_selector, matches_all, requirements
from gang_scheduler.domain.vectors import ALL, Mask
from kube import Event, Key, Object
from kube.volumes import (
    CLAIM,
    EXCLUSIVE,
    VOLUME,
    capacity_of,
    class_of,
    is_free,
    size_of,
    topology_term,
    volume_suits,
    waits_for_consumer,
)
from kube.volumes import provisions as is_provisioned

GONE = "unavailable due to one or more pvc(s) bound to non-existent pv(s)"
CONFLICT = "had volume node affinity conflict"
NOTHING_TO_BIND = "didn't find available persistent volumes to bind"
IN_USE = "has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


class Choice(NamedTuple):
    """What a claim that is not bound yet will be bound to: a volume, or one made for ``slot`` (``volume`` "")."""

    claim: Key
    uid: str
    volume: str
    slot: int


@dataclass(slots=True)
class VolumeBooks:
    """Claims, volumes and classes as facts tell them; who uses which claim where, and what was chosen for those users."""

    table: NodeTable
    claims: dict[Key, Object] = field(default_factory=dict)
    volumes: dict[str, Object] = field(default_factory=dict)
    classes: dict[str, Object] = field(default_factory=dict)
    users: dict[Key, dict[int, int]] = field(default_factory=dict)
    """By claim: how many pods use it at which slot."""

    decided: dict[Key, str] = field(default_factory=dict)
    """What decisions on their way bind claims to."""

    _chosen: dict[Key, Choice] = field(default_factory=dict)
    _open: dict[str, dict[str, Object]] = field(default_factory=dict)
    """By class the volumes that no claim has."""

    _named: dict[str, Key] = field(default_factory=dict)
    """By volume the claim that names it, whether it is bound to it already or not."""

    _taken: dict[str, Key] = field(default_factory=dict)
    _terms: dict[str, tuple[Object, tuple[NodeTerm, ...]]] = field(default_factory=dict)

    def fold(self, event: Event) -> None:
        """A claim, a volume or a class came, changed or went."""
        key, new = event.key, event.new
        if key.kind == CLAIM:
            before = self.claims.get(key)
            if before is not None and self._named.get(before.spec.get("volumeName", "")) == key:
                del self._named[before.spec["volumeName"]]
            if new is not None and new.spec.get("volumeName"):
                self._named[str(new.spec["volumeName"])] = key
            _note(self.claims, key, new)
            if new is None or new.spec.get("volumeName"):
                self._forget(key)
                self.decided.pop(key, None)
        elif key.kind == VOLUME:
            self._fold_volume(key.name, new)
        else:
            _note(self.classes, key.name, new)

    def _fold_volume(self, name: str, new: Object | None) -> None:
        before = self.volumes.get(name)
        if before is not None:
            self._open.get(class_of(before) or "", {}).pop(name, None)
        _note(self.volumes, name, new)
        if new is not None and not (new.spec.get("claimRef") or {}).get("uid"):
            self._open.setdefault(class_of(new) or "", {})[name] = new

    def objects(self) -> Iterator[Object]:
        """All that facts told."""
        for index in (self.classes, self.volumes, self.claims):
            yield from index.values()

    def move(self, claims: Sequence[Key], slot: int, sign: int) -> None:
        """A pod that names ``claims`` comes to a node, or leaves it."""
        for key in self._by_size(claims):
            users = self.users.setdefault(key, {})
            users[slot] = users.get(slot, 0) + sign
            if not users[slot]:
                del users[slot]
            if not users:
                del self.users[key]
                self._forget(key)
            elif sign > 0 and key not in self._chosen:
                self._choose(key, slot)

    def choices(self, claims: Sequence[Key]) -> tuple[Choice, ...]:
        """What a pod that was just placed makes of its claims; those that are bound, or decided, are left out."""
        found = (self._chosen.get(key) for key in claims if key not in self.decided)
        return tuple(choice for choice in found if choice is not None)

    def obstacle(self, claims: Sequence[Key]) -> str:
        """What keeps a pod from every node, in Kubernetes' words; "" when nothing does."""
        for key in claims:
            claim, told = self.claims.get(key), f'persistentvolumeclaim "{key.name}"'
            if claim is None:
                return f"{told} not found"
            if claim.deleting:
                return f"{told} is being deleted"
            if claim.status.get("phase") == "Lost":
                return f'{told} bound to non-existent persistentvolume "{claim.spec.get("volumeName")}"'
        unbound = [
            key for key in claims if not self._is_bound(self.claims[key]) and not self._delayed(self.claims[key])
        ]
        if not unbound:
            return ""
        names = ", ".join(f'"{key.name}"' for key in unbound)
        return f"pod has unbound immediate PersistentVolumeClaims ({names}){self._class_missing(unbound[0])}"

    def masks(self, claims: Sequence[Key]) -> Iterator[tuple[str, Mask]]:
        """Each rule with the nodes where it holds for a pod that names ``claims``."""
        if not claims:
            return
        obstacle = self.obstacle(claims)
        if obstacle:
            yield obstacle, self._nowhere()
            return
        open_claims = []
        for key in self._by_size(claims):
            claim = self.claims[key]
            if EXCLUSIVE in (claim.spec.get("accessModes") or ()) and key in self.users:
                yield IN_USE, self._nowhere()
            if self._is_bound(claim):
                yield from self._at_volume(str(claim.spec["volumeName"]))
            elif key in self._chosen:
                yield from self._at_choice(claim, self._chosen[key])
            else:
                open_claims.append(claim)
        if open_claims:
            yield NOTHING_TO_BIND, self._bindable(open_claims)

    def _class_missing(self, key: Key) -> str:
        name = class_of(self.claims[key])
        return f': storageclass.storage.k8s.io "{name}" not found' if name and name not in self.classes else ""

    def _is_bound(self, claim: Object) -> bool:
        return bool(claim.spec.get("volumeName")) and claim.status.get("phase") == "Bound"

    def _delayed(self, claim: Object) -> bool:
        """Whether the claim is bound with its first pod. A volume that it names already is not waited for."""
        named = claim.spec.get("volumeName")
        return not named and waits_for_consumer(self._class(claim))

    def _class(self, claim: Object) -> Object | None:
        return self.classes.get(class_of(claim) or "")

    def _nowhere(self) -> Mask:
        return np.zeros(self.table.size, np.bool_)

    def _at_volume(self, name: str) -> Iterator[tuple[str, Mask]]:
        if name not in self.volumes:
            yield GONE, self._nowhere()
        elif (mask := self._reach(name)) is not None:
            yield CONFLICT, mask

    def _at_choice(self, claim: Object, choice: Choice) -> Iterator[tuple[str, Mask]]:
        """Others that use the claim go where its volume will be."""
        if choice.volume:
            yield from self._at_volume(choice.volume)
            return
        name = self.table.names[choice.slot]
        term = topology_term(self._class(claim), name, self.table.labels_at(choice.slot))
        yield CONFLICT, self._any_term([node_term(term)])

    def _reach(self, volume: str) -> Mask | None:
        """The nodes that a volume can be had on; None for all."""
        item = self.volumes[volume]
        known = self._terms.get(volume)
        if known is None or known[0] is not item:
            required = (item.spec.get("nodeAffinity") or {}).get("required") or {}
            terms = tuple(node_term(term) for term in required.get("nodeSelectorTerms") or ())
            known = self._terms[volume] = item, terms
        return self._any_term(known[1]) if known[1] else None

    def _any_term(self, terms: Sequence[NodeTerm]) -> Mask:
        mask = self._nowhere()
        for term in terms:
            mask |= term_mask(term, self.table, ALL)
        return mask

    def _bindable(self, claims: Sequence[Object]) -> Mask:
        """The nodes where every one of ``claims`` finds a volume of its own or gets one made; the smallest claim first."""
        everywhere: Mask = np.ones(self.table.size, np.bool_)
        used: dict[str, Mask] = {}
        for claim in claims:
            found = self._nowhere()
            for name in self._candidates(claim):
                reach = self._reach(name)
                here = ~found if reach is None else reach & ~found
                if name in used:
                    here &= ~used[name]
                found |= here
                used[name] = used[name] | here if name in used else here
            everywhere &= found | self._made_at(claim)
        return everywhere

    def _made_at(self, claim: Object) -> Mask:
        """Where a volume can be made for a claim."""
        storage = self._class(claim)
        if storage is None or not is_provisioned(storage):
            return self._nowhere()
        allowed = storage.body.get("allowedTopologies") or ()
        if not allowed:
            return np.ones(self.table.size, np.bool_)
        return self._any_term([_topology(item) for item in allowed])

    def _candidates(self, claim: Object) -> list[str]:
        """The volumes that nobody has and that would do for a claim; the smallest first, of equal ones by name."""
        selector = label_selector(claim.spec.get("selector")) or ()
        found = [
            (capacity_of(item), name)
            for name, item in self._open.get(class_of(claim) or "", {}).items()
            if self._taken.get(name, claim.key) == claim.key and self._named.get(name, claim.key) == claim.key
            if is_free(item, claim) and volume_suits(item, claim) and matches_all(selector, item.labels)
        ]
        return [name for _, name in sorted(found)]

    def _by_size(self, claims: Sequence[Key]) -> Sequence[Key]:
        if len(claims) < 2:
            return claims
        return sorted(claims, key=lambda key: (size_of(self.claims[key]) if key in self.claims else 0, key))

    def _choose(self, key: Key, slot: int) -> None:
        claim = self.claims.get(key)
        if claim is None or self._is_bound(claim) or not self._delayed(claim):
            return
        if key in self.decided:
            volume = self.decided[key]
        else:
            reaches = ((name, self._reach(name)) for name in self._candidates(claim))
            volume = next((name for name, reach in reaches if reach is None or reach[slot]), "")
        self._chosen[key] = Choice(key, claim.uid, volume, slot)
        if volume:
            self._taken[volume] = key

    def _forget(self, key: Key) -> None:
        choice = self._chosen.pop(key, None)
        if choice is not None and self._taken.get(choice.volume) == key:
            del self._taken[choice.volume]


def _topology(item: Mapping[str, Any]) -> NodeTerm:
    """A term of allowedTopologies: for every key one of its values."""
    given = item.get("matchLabelExpressions") or ()
    return NodeTerm(requirements([{**one, "operator": "In"} for one in given]), ())


def _note(index: dict[Any, Object], key: Any, item: Object | None) -> None:
    if item is None:
        index.pop(key, None)
    else:
        index[key] = item
