"""One Reservation: what it reserves, who of its owners takes what of it, what is left."""

from dataclasses import dataclass, field, replace

from gang_scheduler.domain.devices.device_needs import CardNeed, DeviceNeed, Traits, device_need
from gang_scheduler.domain.devices.mig_cards import SliceNeed
from gang_scheduler.domain.devices.nics import WHOLE, Joint, NicNeed
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.pods.pod_shape import HostPort
from gang_scheduler.domain.reservations.reservation_terms import ReservationTerms
from gang_scheduler.domain.terms.pod_requests import PODS
from kube import Key, Object
from resources import Amounts

AVAILABLE, WAITING = "Available", "Waiting"
OVER = ("Succeeded", "Failed")


@dataclass(slots=True, eq=False)
class Reservation:
    """``record`` is the pod that its template describes; ``node`` is where it stands, or will as a decision on its way says."""

    item: Object
    record: PodRecord
    terms: ReservationTerms
    node: str = ""
    slot: int = -1
    assumed: bool = False
    ahead: bool = False
    """Whether it stands over pods that have the room as yet, its owners: nobody else gets it before these have gone."""

    lifted: bool = False
    """Whether it holds nothing for a moment, as one of its owners looks at its room."""

    amounts: Amounts = field(default_factory=dict)
    """What it reserves, one pod included."""

    owners: dict[Key, PodRecord] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    """What it holds of its node now."""

    held_ports: tuple[HostPort, ...] = ()

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def phase(self) -> str:
        return str(self.item.status.get("phase") or "Pending")

    @property
    def waits(self) -> bool:
        """Whether it is to be placed."""
        return not self.node and self.phase not in (*OVER, AVAILABLE, WAITING) and not self.item.deleting

    @property
    def used_up(self) -> bool:
        """Whether its one owner has come."""
        return self.terms.once and bool(self.owners) and not self.ahead

    def allocated(self) -> Amounts:
        """What its owners take of what it reserves."""
        total = dict.fromkeys(self.amounts, 0)
        for owner in self.owners.values():
            for name in total:
                total[name] += owner.shape.requests.get(name, 0)
        return total

    def left(self) -> Amounts:
        """What of it nobody has taken."""
        taken = self.allocated()
        return {name: max(0, amount - taken[name]) for name, amount in self.amounts.items()}

    def lacks(self, record: PodRecord) -> list[str]:
        """The restricted resources of which a pod asks for more than is left."""
        if not self.terms.restricts:
            return []
        left = self.left()
        names = [name for name in self.terms.restricted or left if name in left and name != PODS]
        return [name for name in names if record.shape.requests.get(name, 0) > left[name]]

    def ports_left(self) -> tuple[HostPort, ...]:
        """The host ports of its template that none of its owners has."""
        taken = {port for owner in self.owners.values() for port in owner.shape.ports}
        return tuple(port for port in self.record.shape.ports if port not in taken)

    def fullness(self, record: PodRecord) -> int:
        """How full it is with the pod in it, in millionths for each resource, averaged."""
        taken = self.allocated()
        shares = [
            (taken[name] + record.shape.requests.get(name, 0)) * 1_000_000 // amount
            for name, amount in self.amounts.items()
            if amount and name != PODS
        ]
        return sum(shares) // len(shares) if shares else 0

    def devices_left(self) -> DeviceNeed:
        """What of the devices that it reserves nobody has taken."""
        asked = self.record.shape.devices
        joint = asked.nics.joint if asked.nics else Joint.NONE
        wish = asked.cards.wish if asked.cards else None
        traits = Traits(asked.cpus > 0, asked.policy, asked.binding, joint=joint, apart=asked.apart, wish=wish)
        need = device_need(self.record.pod.spec, self.amounts, traits)
        for owner in self.owners.values():
            need = _rest(need, owner.shape.devices)
        return need


def _rest(need: DeviceNeed, taken: DeviceNeed) -> DeviceNeed:
    """What is left of a need when an owner has taken its part."""
    return replace(
        need,
        cards=_rest_of_cards(need.cards, taken.cards),
        cpus=max(0, need.cpus - taken.cpus),
        cpu=max(0, need.cpu - taken.cpu),
        memory=max(0, need.memory - taken.memory),
        nics=_rest_of_nics(need.nics, taken.nics),
        slices=_rest_of_slices(need.slices, taken.slices),
    )


def _rest_of_slices(need: tuple[SliceNeed, ...], taken: tuple[SliceNeed, ...]) -> tuple[SliceNeed, ...]:
    gone = {one.profile: one.count for one in taken}
    left = (replace(one, count=one.count - gone.get(one.profile, 0)) for one in need)
    return tuple(one for one in left if one.count > 0)


def _rest_of_nics(need: NicNeed | None, taken: NicNeed | None) -> NicNeed | None:
    if need is None or taken is None:
        return need
    if need.share == WHOLE and taken.share == WHOLE:
        return replace(need, count=need.count - taken.count) if need.count > taken.count else None
    left = need.count * need.share - taken.count * taken.share
    return replace(need, share=left // need.count) if left >= need.count else None


def _rest_of_cards(need: CardNeed | None, taken: CardNeed | None) -> CardNeed | None:
    if need is None or taken is None:
        return need
    if need.whole and taken.whole:
        return replace(need, count=need.count - taken.count) if need.count > taken.count else None
    rest = replace(
        need,
        core=max(0, need.core - taken.core),
        memory=max(0, need.memory - taken.memory),
        ratio=max(0, need.ratio - taken.ratio),
    )
    return rest if rest.core or rest.memory or rest.ratio else None
