"""Who has what of the devices of one node.

Three kinds of pods hold something. Those whose allotment is a fact, or a decision on its way, hold exactly that. Those that
run though nobody said with which devices take what a choice would give them, in the order of their creation, after all
others; so what they hold follows from the facts alone. Those on trial hold what they chose until they are taken back.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.devices.allotments import NOTHING, Allotment
from gang_scheduler.domain.devices.device_needs import DeviceNeed, NumaPolicy
from gang_scheduler.domain.devices.node_room import NodeRoom
from kube import Key


class Tenant(NamedTuple):
    """A pod on the node. ``given`` is what it is known to have; ``bound`` is whether it is on the node for real."""

    key: Key
    need: DeviceNeed
    given: Allotment
    bound: bool
    order: tuple[int, str, str, str]
    yields: bool = False
    """Whether it takes nothing where there is too little: nobody is there who uses it yet."""


@dataclass(slots=True)
class NodeDevices:
    """``held`` is what each pod on the node has."""

    room: NodeRoom
    held: dict[Key, tuple[Tenant, Allotment]] = field(default_factory=dict)
    _floating: dict[Key, Tenant] = field(default_factory=dict)

    def take(self, tenant: Tenant) -> Allotment:
        """A pod comes; returns what it has now."""
        if tenant.bound:
            given = self._fitting(tenant)
            if given is None:
                self._floating[tenant.key] = tenant
                self._settle()
                return self.held[tenant.key][1]
            self._hold(tenant, given)
            self._settle()
            return given
        allotment = self.room.choose(tenant.need) or NOTHING
        self._hold(tenant, allotment)
        return allotment

    def give(self, key: Key) -> None:
        """A pod goes; nothing happens when it had nothing."""
        entry = self.held.pop(key, None)
        if entry is None:
            return
        self.room.charge(entry[0].need, entry[1], 1)
        if self._floating:
            self._floating.pop(key, None)
            if entry[0].bound:
                self._settle()

    def _settle(self) -> None:
        """Let those that nobody gave anything to take it anew."""
        if not self._floating:
            return
        for key in self._floating:
            self._drop(key)
        for tenant in sorted(self._floating.values(), key=lambda tenant: tenant.order):
            allotment = self.room.choose(tenant.need)
            if allotment is None and not tenant.yields:
                allotment = self.room.choose(tenant.need, forced=True)
            allotment = allotment or NOTHING
            self._hold(tenant, allotment)

    def _fitting(self, tenant: Tenant) -> Allotment | None:
        """The part of what the tenant is known to have that its need speaks of; None when something of it is not known."""
        need, given = tenant.need, tenant.given
        kept = self.room.policy_for(need) >= NumaPolicy.RESTRICTED and bool(need.cpu or need.memory)
        missing = need.cards is not None and not given.cards
        missing = missing or (need.cpus > 0 and not given.cpus) or (kept and not given.shares)
        missing = missing or (bool(need.slices) and bool(self.room.split) and not given.slices)
        missing = missing or (need.nics is not None and bool(self.room.nics) and not given.nics)
        if missing:
            return None
        return Allotment(
            given.resource,
            given.cards if need.cards else (),
            given.cpus if need.cpus else (),
            given.shares if kept else (),
            given.nics if need.nics else (),
            given.slices if need.slices else (),
        )

    def _hold(self, tenant: Tenant, allotment: Allotment) -> None:
        self.held[tenant.key] = tenant, allotment
        self.room.charge(tenant.need, allotment, -1)

    def _drop(self, key: Key) -> None:
        entry = self.held.pop(key, None)
        if entry is not None:
            self.room.charge(entry[0].need, entry[1], 1)
