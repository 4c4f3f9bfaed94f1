"""Who has what of the devices of one node.

Three kinds of pods hold something. Those whose grant is a fact, or a decision on its way, hold exactly that. Those that
run though nobody said with which devices take what a choice would give them, in the order of their creation, after all
others; so what they hold follows from the facts alone. Those on trial hold what they chose until they are taken back.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.device_needs import DeviceNeed, NumaPolicy
from gang_scheduler.domain.grants import NOTHING, Grant
from gang_scheduler.domain.node_room import NodeRoom
from kube import Key


class Claim(NamedTuple):
    """A pod on the node. ``given`` is what it is known to have; ``bound`` is whether it is on the node for real."""

    key: Key
    need: DeviceNeed
    given: Grant
    bound: bool
    order: tuple[int, str, str, str]


@dataclass(slots=True)
class NodeDevices:
    """``held`` is what each pod on the node has."""

    room: NodeRoom
    held: dict[Key, tuple[Claim, Grant]] = field(default_factory=dict)
    _floating: dict[Key, Claim] = field(default_factory=dict)

    def take(self, claim: Claim) -> Grant:
        """A pod comes; returns what it has now."""
        if claim.bound:
            given = self._fitting(claim)
            if given is None:
                self._floating[claim.key] = claim
                self._settle()
                return self.held[claim.key][1]
            self._hold(claim, given)
            self._settle()
            return given
        grant = self.room.choose(claim.need) or NOTHING
        self._hold(claim, grant)
        return grant

    def give(self, key: Key) -> None:
        """A pod goes; nothing happens when it had nothing."""
        if key not in self.held:
            return
        bound = self.held[key][0].bound
        self._drop(key)
        self._floating.pop(key, None)
        if bound:
            self._settle()

    def _settle(self) -> None:
        """Let those that nobody gave anything to take it anew."""
        if not self._floating:
            return
        for key in self._floating:
            self._drop(key)
        for claim in sorted(self._floating.values(), key=lambda claim: claim.order):
            grant = self.room.choose(claim.need) or self.room.choose(claim.need, forced=True) or NOTHING
            self._hold(claim, grant)

    def _fitting(self, claim: Claim) -> Grant | None:
        """The part of what the claim is known to have that its need speaks of; None when something of it is not known."""
        need, given = claim.need, claim.given
        kept = self.room.policy_for(need) >= NumaPolicy.RESTRICTED and bool(need.cpu or need.memory)
        missing = (need.cards and not given.cards) or (need.cpus and not given.cpus) or (kept and not given.shares)
        if missing:
            return None
        return Grant(
            given.resource,
            given.cards if need.cards else (),
            given.cpus if need.cpus else (),
            given.shares if kept else (),
        )

    def _hold(self, claim: Claim, grant: Grant) -> None:
        self.held[claim.key] = claim, grant
        self.room.charge(claim.need, grant, -1)

    def _drop(self, key: Key) -> None:
        entry = self.held.pop(key, None)
        if entry is not None:
            self.room.charge(entry[0].need, entry[1], 1)
