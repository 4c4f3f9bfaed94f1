"""The volumes that pods claim: where each can be, and which claim takes which volume.

The plain rules are those of Kubernetes. A bound claim is where its volume is. A claim of a class that waits for its first
consumer is bound on the node chosen: to the smallest volume there that nobody has, or to one that is made for it. Any other
claim has to be bound before its pods can go anywhere. What pods on trial would bind is on these books too, and goes with them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.vectors import Mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.storage.volume_supply import VolumeSupply
from kube import Event, Key, Object
from kube.volumes import CLAIM, EXCLUSIVE, VOLUME, size_of

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
    """Claims as facts tell them; who uses which of them where, and what was chosen for those users."""

    table: NodeTable
    supply: VolumeSupply = field(init=False)
    claims: dict[Key, Object] = field(default_factory=dict)
    users: dict[Key, dict[int, int]] = field(default_factory=dict)
    """By claim: how many pods use it at which slot."""

    decided: dict[Key, str] = field(default_factory=dict)
    """What decisions on their way bind claims to."""

    _chosen: dict[Key, Choice] = field(default_factory=dict)
    _named: dict[str, Key] = field(default_factory=dict)
    """By volume the claim that names it, whether it is bound to it already or not."""

    _taken: dict[str, Key] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.supply = VolumeSupply(self.table)

    def fold(self, event: Event) -> None:
        """A claim, a volume or a class came, changed or went."""
        if event.key.kind == CLAIM:
            self._fold_claim(event.key, event.new)
        elif event.key.kind == VOLUME:
            self.supply.fold_volume(event.key.name, event.new)
        else:
            self.supply.fold_class(event.key.name, event.new)

    def _fold_claim(self, key: Key, new: Object | None) -> None:
        before = self.claims.pop(key, None)
        if before is not None and self._named.get(before.spec.get("volumeName", "")) == key:
            del self._named[before.spec["volumeName"]]
        if new is not None:
            self.claims[key] = new
            if new.spec.get("volumeName"):
                self._named[str(new.spec["volumeName"])] = key
        if new is None or new.spec.get("volumeName"):
            self._forget(key)
            self.decided.pop(key, None)

    def objects(self) -> Iterator[Object]:
        """All that facts told."""
        for index in (self.supply.classes, self.supply.volumes, self.claims):
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
        unbound = [key for key in claims if not _is_bound(self.claims[key]) and not self._delayed(self.claims[key])]
        if not unbound:
            return ""
        names = ", ".join(f'"{key.name}"' for key in unbound)
        missing = self.supply.class_missing(self.claims[unbound[0]])
        return f"pod has unbound immediate PersistentVolumeClaims ({names}){missing}"

    def masks(self, claims: Sequence[Key]) -> Iterator[tuple[str, Mask]]:
        """Each rule with the nodes where it holds for a pod that names ``claims``."""
        if not claims:
            return
        obstacle = self.obstacle(claims)
        if obstacle:
            yield obstacle, self.supply.nowhere()
            return
        open_claims = []
        for key in self._by_size(claims):
            claim = self.claims[key]
            if EXCLUSIVE in (claim.spec.get("accessModes") or ()) and key in self.users:
                yield IN_USE, self.supply.nowhere()
            if _is_bound(claim):
                yield from self._at_volume(str(claim.spec["volumeName"]))
            elif key in self._chosen:
                yield from self._at_choice(claim, self._chosen[key])
            else:
                open_claims.append(claim)
        if open_claims:
            yield NOTHING_TO_BIND, self._bindable(open_claims)

    def _delayed(self, claim: Object) -> bool:
        """Whether the claim is bound with its first pod. A volume that it names already is not waited for."""
        return not claim.spec.get("volumeName") and self.supply.waits_for_consumer(claim)

    def _at_volume(self, name: str) -> Iterator[tuple[str, Mask]]:
        if name not in self.supply.volumes:
            yield GONE, self.supply.nowhere()
        elif (mask := self.supply.reach(name)) is not None:
            yield CONFLICT, mask

    def _at_choice(self, claim: Object, choice: Choice) -> Iterator[tuple[str, Mask]]:
        """Others that use the claim go where its volume will be."""
        if choice.volume:
            yield from self._at_volume(choice.volume)
        else:
            yield CONFLICT, self.supply.near(claim, choice.slot)

    def _bindable(self, claims: Sequence[Object]) -> Mask:
        """The nodes where every one of ``claims`` finds a volume of its own or gets one made; the smallest claim first."""
        everywhere: Mask = np.ones(self.table.size, np.bool_)
        used: dict[str, Mask] = {}
        for claim in claims:
            found = self.supply.nowhere()
            for name in self._candidates(claim):
                reach = self.supply.reach(name)
                here = ~found if reach is None else reach & ~found
                if name in used:
                    here &= ~used[name]
                found |= here
                used[name] = used[name] | here if name in used else here
            everywhere &= found | self.supply.made_at(claim)
        return everywhere

    def _candidates(self, claim: Object) -> list[str]:
        """The volumes that nobody has and that would do for a claim; the smallest first, of equal ones by name."""
        found = [
            (size, name)
            for size, name in self.supply.suitable(claim)
            if self._taken.get(name, claim.key) == claim.key and self._named.get(name, claim.key) == claim.key
        ]
        return [name for _, name in sorted(found)]

    def _by_size(self, claims: Sequence[Key]) -> Sequence[Key]:
        if len(claims) < 2:
            return claims
        return sorted(claims, key=lambda key: (size_of(self.claims[key]) if key in self.claims else 0, key))

    def _choose(self, key: Key, slot: int) -> None:
        claim = self.claims.get(key)
        if claim is None or _is_bound(claim) or not self._delayed(claim):
            return
        if key in self.decided:
            volume = self.decided[key]
        else:
            reaches = ((name, self.supply.reach(name)) for name in self._candidates(claim))
            volume = next((name for name, reach in reaches if reach is None or reach[slot]), "")
        self._chosen[key] = Choice(key, claim.uid, volume, slot)
        if volume:
            self._taken[volume] = key

    def _forget(self, key: Key) -> None:
        choice = self._chosen.pop(key, None)
        if choice is not None and self._taken.get(choice.volume) == key:
            del self._taken[choice.volume]


def _is_bound(claim: Object) -> bool:
    return bool(claim.spec.get("volumeName")) and claim.status.get("phase") == "Bound"
