"""The claims of pods: what they ask for, what they have, and what they would get on which node.

A claim has what its status says, or what a decision on its way gives it, or, during a pass, what a trial chose. A claim
that belongs to one pod (made from a template) and has nothing yet is part of the pod's shape by what it asks for, so that
pods of one template are alike. All others are part of it by name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.vectors import Mask
from gang_scheduler.domain.dra.allocator import Allocator, Chosen
from gang_scheduler.domain.dra.claim_holdings import ClaimHoldings
from gang_scheduler.domain.dra.claim_status import allocation_of
from gang_scheduler.domain.dra.requests import (
    CLAIM,
    MOST_USERS,
    Share,
    Wanted,
    claim_names,
    holding_of,
    users_of,
    wanted,
)
from gang_scheduler.domain.dra.slices import DeviceId, text_of
from gang_scheduler.domain.pods.pod_shape import PodShape
from kube import Key, Manifest, Object

MISSING, NAMED, OWN = "missing:", "claim:", "asks:"


class Grant(NamedTuple):
    """What a placement does to a claim: reserve it for one more pod, and allocate devices where it is no fact yet.

    ``users`` are all for whom it is then, those of other decisions on their way too: whichever comes last holds for all.
    """

    claim: Object
    users: tuple[Manifest, ...]
    allocation: Manifest | None

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """What it gets that is no fact yet, for itself."""
        holding = holding_of(self.allocation)
        return holding.devices if holding is not None else ()

    @property
    def shares(self) -> tuple[Share, ...]:
        """What it gets that is no fact yet, of devices that it shares."""
        holding = holding_of(self.allocation)
        return holding.shares if holding is not None else ()


@dataclass(slots=True)
class _Fit:
    """On which nodes a shape's claims can be met, as of a place in the log."""

    mask: Mask
    version: tuple[int, int]
    seen: int
    why: str = ""


@dataclass(slots=True)
class ClaimBook(ClaimHoldings):
    """What claims have, and what they would get on which node."""

    _kept: frozenset[DeviceId] = frozenset()
    """Devices that are kept for somebody, free or not yet."""

    _kept_parts: dict[tuple[DeviceId, str], int] = field(default_factory=dict)
    """How much of which capacity of devices that are shared is kept."""

    _fits: dict[int, _Fit] = field(default_factory=dict)

    def text_of(self, pod: Object) -> tuple[str, ...]:
        """The claims of a pod as part of its shape."""
        return tuple(self._text(pod, name, claim) for name, claim in claim_names(pod))

    def place(self, pods: Iterable[Object], shape: PodShape, slot: int) -> None:
        """Pods are put on a node on trial: their claims get devices there. The caller knows that they fit."""
        for pod in pods:
            self._place(pod, shape, slot)

    def _place(self, pod: Object, shape: PodShape, slot: int) -> None:
        missing = [key for key, text in self._claims(pod, shape) if self._holding(key) is None]
        chosen = self._choose(shape, slot, missing)
        for at, key in enumerate(missing):
            mine = [one for one in chosen if one.claim == at]
            self._trial[key] = pod.key, allocation_of(self.claims[key], mine, self.table.names[slot])
            self._renew(key)
        user = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        for key, _ in self._claims(pod, shape):
            self._trial_users.setdefault(key, {})[pod.uid] = user

    def take_back(self, pods: Iterable[Object]) -> None:
        """Pods leave their place: what the trial gave to their claims comes back."""
        for pod in pods:
            for key in self.keys_of(pod):
                self._trial_users.get(key, {}).pop(pod.uid, None)
                if key in self._trial and self._trial[key][0] == pod.key:
                    del self._trial[key]
                    self._renew(key)

    def keep(self, devices: frozenset[DeviceId], shares: Iterable[Share] = ()) -> None:
        """Keep these devices, and these parts of others, for somebody, instead of those that were kept before.

        Parts are kept in full while those who are to leave still have theirs: until then nobody else gets any of them.
        """
        parts: dict[tuple[DeviceId, str], int] = {}
        for device, taken in shares:
            for name, amount in taken:
                parts[device, name] = parts.get((device, name), 0) + amount
        changed = {device for device, _ in dict(parts.items() ^ self._kept_parts.items())}
        changed |= self._kept ^ devices
        self._kept, self._kept_parts = devices, parts
        for device in sorted(changed):
            self.pools.note(device)

    def grants(self, pod: Object) -> tuple[Grant, ...]:
        """What the decision that binds the pod has to do to its claims."""
        found = []
        for key in self.keys_of(pod):
            claim = self.claims[key]
            users = {str(one.get("uid")): one for one in users_of(claim)}
            for patch in self._assumed.get(key, ()):
                users |= {str(one["uid"]): one for one in patch.get("reservedFor") or ()}
            users |= self._trial_users.get(key, {})
            is_fact = bool(claim.status.get("allocation"))
            found.append(Grant(claim, tuple(users.values()), None if is_fact else self._allocation(key)))
        return tuple(found)

    def masks(self, shape: PodShape) -> Iterator[tuple[str, Mask]]:
        """The nodes on which the claims of a pod can be met."""
        if not shape.resource_claims:
            return
        fit = self._fit(shape)
        yield f"do not have the devices for the pod's resource claims{f': {fit.why}' if fit.why else ''}", fit.mask

    def possible(self, shape: PodShape) -> bool:
        """Whether some node would do if nobody had any device; claims that are not there, or have theirs, may yet change."""
        asked = []
        for text in shape.resource_claims:
            key = _key(text)
            if text.startswith(MISSING) or (key is not None and (key not in self.claims or self._holding(key))):
                return True
            asked.append(self._wanted(text))
        slots = np.flatnonzero(self.table.exists).tolist()
        empty = (Allocator(self.pools.on(slot), self.pools.classes, _nobodys, self.pools.total) for slot in slots)
        return any(search.allocate(asked) is not None for search in empty)

    def waits_for(self, shape: PodShape) -> str:
        """Why no node would do; "" where one might."""
        for text in shape.resource_claims:
            if text.startswith(MISSING):
                return f"resource claim {text.removeprefix(MISSING)} does not exist"
            key = _key(text)
            if key is None:
                continue
            if key in self.releasing:
                return f"resource claim {key.name} is being released"
            claim = self.claims.get(key)
            if claim is not None and claim.deleting:
                return f"resource claim {key.name} is being deleted"
            if claim is not None and len(users_of(claim)) >= MOST_USERS:
                return f"resource claim {key.name} is reserved for {MOST_USERS} pods, which is the most"
        return ""

    def _text(self, pod: Object, name: str, claim_name: str) -> str:
        key = Key(CLAIM, pod.namespace, claim_name)
        claim = self.claims.get(key)
        if claim is None:
            return f"{MISSING}{claim_name or name}"
        own = any(owner.get("uid") == pod.uid for owner in claim.metadata.get("ownerReferences") or ())
        if own and not claim.status.get("allocation") and not claim.deleting and key not in self.releasing:
            return f"{OWN}{text_of(claim.spec.get('devices'))}"
        return f"{NAMED}{pod.namespace}/{claim_name}"

    def _claims(self, pod: Object, shape: PodShape) -> Iterator[tuple[Key, str]]:
        for (_, name), text in zip(claim_names(pod), shape.resource_claims, strict=True):
            yield Key(CLAIM, pod.namespace, name), text

    def _fit(self, shape: PodShape) -> _Fit:
        named = any(text.startswith(NAMED) for text in shape.resource_claims)
        version = (self.pools.version + self.table.version, self._named_version if named else 0)
        log = self.pools.changes
        fit = self._fits.get(shape.index)
        changed = log.since(fit.seen) if fit is not None and fit.version == version else None
        if fit is None or changed is None or len(fit.mask) != self.table.size:
            fit = self._fits[shape.index] = _Fit(np.zeros(self.table.size, np.bool_), version, log.end)
            changed = np.flatnonzero(self.table.exists).tolist() if self.pools.any() or named else []
        why = self.waits_for(shape)
        if why:
            return _Fit(np.zeros(self.table.size, np.bool_), version, log.end, why)
        for slot in sorted(changed):
            fit.mask[slot] = self._fits_on(shape, slot, fit)
        fit.seen = log.end
        return fit

    def _fits_on(self, shape: PodShape, slot: int, fit: _Fit) -> bool:
        asked: list[Wanted] = []
        for text in shape.resource_claims:
            key = _key(text)
            holding = self._holding(key) if key is not None else None
            if holding is not None:
                if not self.pools.reaches(holding.terms, slot):
                    fit.why = f"{key.name if key else ''} has devices of other nodes"
                    return False
            else:
                asked.append(self._wanted(text))
        search = self._allocator(slot)
        if search.allocate(asked) is None:
            fit.why = f"{search.why}, on {self.table.names[slot]}"
            return False
        return True

    def _choose(self, shape: PodShape, slot: int, keys: Sequence[Key]) -> list[Chosen]:
        asked = [wanted(text_of(self.claims[key].spec.get("devices"))) for key in keys]
        return self._allocator(slot).allocate(asked) or []

    def _allocator(self, slot: int) -> Allocator:
        pools, kept = self.pools, self._kept
        users = pools.users

        def taken(device: DeviceId) -> bool:
            return device in users or device in kept

        drawn = pools.drawn
        if self._kept_parts:
            drawn = {**drawn, **{part: drawn.get(part, 0) + kept for part, kept in self._kept_parts.items()}}
        return Allocator(pools.on(slot), pools.classes, taken, pools.left, pools.sharers, drawn)

    def _wanted(self, text: str) -> Wanted:
        if text.startswith(OWN):
            return wanted(text.removeprefix(OWN))
        key = _key(text)
        assert key is not None
        return wanted(text_of(self.claims[key].spec.get("devices")))


def _nobodys(_: DeviceId) -> bool:
    """No device is taken."""
    return False


def _key(text: str) -> Key | None:
    """The claim that a shape names."""
    if not text.startswith(NAMED):
        return None
    namespace, _, name = text.removeprefix(NAMED).partition("/")
    return Key(CLAIM, namespace, name)


def reserved(grants: Iterable[Grant]) -> Iterator[tuple[Object, Manifest]]:
    """For each claim the change of its status that all the placements of one decision come to."""
    by_claim: dict[Key, list[Grant]] = {}
    for grant in grants:
        by_claim.setdefault(grant.claim.key, []).append(grant)
    for found in by_claim.values():
        patch: Manifest = {"reservedFor": list(found[-1].users)}
        made = [grant.allocation for grant in found if grant.allocation is not None]
        if made:
            patch["allocation"] = made[0]
        yield found[0].claim, patch
