"""What claims have of devices: by their status, by a decision on its way, or, during a pass, by what a trial chose."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from gang_scheduler.domain.dra.device_pools import DevicePools
from gang_scheduler.domain.dra.requests import CLAIM, Holding, claim_names, holding_of, users_of
from gang_scheduler.domain.nodes.node_table import NodeTable
from kube import Event, Key, Manifest, Object


@dataclass(slots=True)
class ClaimHoldings:
    """``trial`` is what placements on trial gave to claims, and to which pod they did."""

    table: NodeTable
    pools: DevicePools = field(init=False)
    claims: dict[Key, Object] = field(default_factory=dict)
    releasing: set[Key] = field(default_factory=set)
    """Claims that are being taken from those who have ended: nobody gets them until that is a fact."""

    _trial: dict[Key, tuple[Key, Manifest]] = field(default_factory=dict)
    _trial_users: dict[Key, dict[str, Manifest]] = field(default_factory=dict)
    _assumed: dict[Key, list[Manifest]] = field(default_factory=dict)
    """The changes of status that are on their way."""

    _absent: set[str] = field(default_factory=set)
    """The uids of pods that are taken for gone."""

    _held: dict[Key, Holding] = field(default_factory=dict)
    _named_version: int = 0

    def __post_init__(self) -> None:
        self.pools = DevicePools(self.table)

    def fold_claim(self, event: Event) -> None:
        """A claim came, changed or went."""
        if event.new is None:
            self.claims.pop(event.key, None)
        else:
            self.claims[event.key] = event.new
        self._renew(event.key)

    def rebuild(self, other: "ClaimHoldings") -> None:
        """Let an empty book read what this one knows of claims."""
        for claim in self.claims.values():
            other.fold_claim(Event(None, claim))
        for key, patches in self._assumed.items():
            for patch in patches:
                other.assume(key, patch)

    def keys_of(self, pod: Object) -> tuple[Key, ...]:
        """The claims of a pod, whether they are there or not; those that have no name yet are left out."""
        return tuple(Key(CLAIM, pod.namespace, name) for _, name in claim_names(pod) if name)

    def assume(self, key: Key, patch: Manifest) -> None:
        """A decision on its way gives devices to a claim, reserves what it has for one more pod, or takes them back."""
        if "allocation" in patch and patch["allocation"] is None:
            self.releasing.add(key)
        self._assumed.setdefault(key, []).append(patch)
        self._renew(key)

    def unassume(self, key: Key, patch: Manifest) -> None:
        """The decision came to its end: the facts say what there is now."""
        self.releasing.discard(key)
        left = [one for one in self._assumed.pop(key, ()) if one is not patch]
        if left:
            self._assumed[key] = left
        self._renew(key)

    def busy(self, key: Key) -> bool:
        """Whether a decision about the claim is on its way."""
        return key in self._assumed

    def leave(self, pods: Iterable[Object]) -> None:
        """These pods are taken for gone: what is reserved for nobody else comes free."""
        for pod in pods:
            self._absent.add(pod.uid)
            for key in self.keys_of(pod):
                self._renew(key)

    def come_back(self, pods: Iterable[Object]) -> None:
        """These pods are there again, and have what they had."""
        for pod in pods:
            self._absent.discard(pod.uid)
            for key in self.keys_of(pod):
                self._renew(key)

    def reserved_for(self, uids: AbstractSet[str]) -> bool:
        """Whether any claim is reserved for one of these pods, gone or not."""
        return any(str(user.get("uid")) in uids for claim in self.claims.values() for user in users_of(claim))

    def _holding(self, key: Key) -> Holding | None:
        return holding_of(self._allocation(key))

    def _allocation(self, key: Key) -> Manifest | None:
        """What a claim has, be it a fact or not yet."""
        trial = self._trial.get(key)
        if trial is not None:
            return trial[1]
        if self._absent and self._deserted(key):
            return None
        for patch in self._assumed.get(key, ()):
            if patch.get("allocation"):
                allocation: Manifest = patch["allocation"]
                return allocation
        claim = self.claims.get(key)
        return claim.status.get("allocation") if claim is not None else None

    def _deserted(self, key: Key) -> bool:
        """Whether all for whom a claim is reserved are taken for gone."""
        claim = self.claims.get(key)
        facts = users_of(claim) if claim is not None else []
        coming = [user for patch in self._assumed.get(key, ()) for user in patch.get("reservedFor") or ()]
        users = [*facts, *coming, *self._trial_users.get(key, {}).values()]
        return bool(users) and all(str(user.get("uid")) in self._absent for user in users)

    def _renew(self, key: Key) -> None:
        """Let the pools know what a claim has now."""
        before, now = self._held.pop(key, None), self._holding(key)
        if before != now or now is None:
            self._named_version += 1
        if before is not None:
            self.pools.hold(before, -1)
        if now is not None:
            self._held[key] = now
            self.pools.hold(now, 1)
