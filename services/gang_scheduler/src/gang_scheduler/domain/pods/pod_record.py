"""One pod as the scheduler keeps it: its newest version, its form, and where it counts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from gang_scheduler.domain.devices.allotments import NOTHING, Allotment
from gang_scheduler.domain.devices.node_devices import Tenant
from gang_scheduler.domain.pods.pod_shape import PodForm, PodShape
from kube import Key, Object, parse_time
from resources import Amounts

if TYPE_CHECKING:
    from gang_scheduler.domain.pods.groups import Group
    from gang_scheduler.domain.pods.podset import PodSet

TASK_SPEC = "volcano.sh/task-spec"

NOMINATED = "nominatedNodeName"
"""Where in its status a pod is told for which node it waits."""


class Standing(IntEnum):
    """What a member is to its gang."""

    PENDING = 0
    """Waits for a node."""
    HELD = 1
    """Waits, but not for us: it has scheduling gates or belongs to another scheduler."""
    BOUND = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    LEAVING = 6
    """Being deleted."""


LIVE = (Standing.BOUND, Standing.RUNNING, Standing.SUCCEEDED)
"""Those that count towards a minimum."""

FINISHED = (Standing.SUCCEEDED, Standing.FAILED)
"""Those that take nothing any more."""


class Newcomer(NamedTuple):
    """A pod on a node, as far as its load matters. ``bound_at`` is None while it is only about to be bound."""

    key: Key
    shape: PodShape
    bound_at: int | None


@dataclass(slots=True, eq=False)
class PodRecord:
    """``node`` is where the pod is bound, or where a decision on its way will bind it (``assumed``)."""

    key: Key
    pod: Object
    form: PodForm
    ours: bool
    group: "Group" = field(init=False)
    standing: Standing = Standing.PENDING
    node: str = ""
    assumed: bool = False
    evicting: bool = False
    """Whether a decision on its way evicts it."""

    slot: int = -1
    """The place in the node table where the pod is counted, -1 while it is nowhere."""

    charged: str | None = None
    """The queue to which it is charged while it is counted."""

    given: Allotment = NOTHING
    """The devices that it has on its node, as far as it, or the decision on its way, says so."""

    podset: "PodSet | None" = None
    """The set that is laid out in the topology of its flavor, where that has one."""

    reservation: str = ""
    """The reservation whose room it uses, "" for none."""

    claim_keys: tuple[Key, ...] = ()
    """The resource claims that it names."""

    matched: tuple[int, ...] = ()
    matched_version: int = -1
    order: tuple[int, str, str, str] = (0, "", "", "")
    """Its place among the members of its gang: by priority, creation, name."""

    @property
    def shape(self) -> PodShape:
        return self.form.shape

    @property
    def role(self) -> str:
        """The task of its job that it belongs to."""
        return self.pod.annotations.get(TASK_SPEC) or self.pod.labels.get(TASK_SPEC) or ""

    @property
    def nominated(self) -> str:
        """The node for which it waits, "" for none."""
        return str(self.pod.status.get(NOMINATED) or "")

    def tenant(self) -> Tenant:
        """The pod as the books of devices know it."""
        return Tenant(self.key, self.shape.devices, self.given, bool(self.node), self.order)

    def newcomer(self) -> Newcomer:
        """The pod as the books of load know it."""
        return Newcomer(self.key, self.form.shape, self.bound_at() if self.node and not self.assumed else None)

    def bound_at(self) -> int:
        """When it got its node, in milliseconds since the epoch."""
        conditions = self.pod.status.get("conditions") or ()
        found = [one.get("lastTransitionTime") for one in conditions if one.get("type") == "PodScheduled"]
        try:
            return parse_time(str(next(filter(None, found), self.pod.created)))
        except ValueError:
            return 0

    def rank(self) -> None:
        """Compute ``order`` again, after the pod or its form changed."""
        self.order = (-self.form.priority, self.pod.created, self.key.namespace, self.key.name)


def in_order(records: Iterable[PodRecord]) -> list[PodRecord]:
    """Pods of one gang by priority, creation, name."""
    return sorted(records, key=attrgetter("order"))


def requests_of(records: Iterable[PodRecord]) -> Amounts:
    """What pods ask for together. Most have one shape, so it is multiplied where it can be."""
    counts: dict[PodShape, int] = {}
    for record in records:
        shape = record.form.shape
        counts[shape] = counts.get(shape, 0) + 1
    total: Amounts = {}
    for shape, count in counts.items():
        for name, amount in shape.requests.items():
            total[name] = total.get(name, 0) + amount * count
    return total


def standing_of(record: PodRecord) -> Standing:
    """What the newest version of a pod makes of it."""
    phase = record.pod.status.get("phase")
    if phase == "Succeeded":
        return Standing.SUCCEEDED
    if phase == "Failed":
        return Standing.FAILED
    if record.pod.deleting:
        return Standing.LEAVING
    if record.node:
        return Standing.RUNNING if phase == "Running" and not record.assumed else Standing.BOUND
    return Standing.HELD if record.form.gates or not record.ours else Standing.PENDING
