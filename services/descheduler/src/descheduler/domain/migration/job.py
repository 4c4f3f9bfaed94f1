"""PodMigrationJob: what it asks for, and how far it is. Koordinator's API."""

from dataclasses import dataclass
from typing import Any

from descheduler.domain.cluster.pod_traits import POD, moment
from descheduler.domain.policy.migration_args import EVICT_DIRECTLY
from kube import Key, Manifest, Object, parse_duration
from kube.json_text import read_json
from resources import Amounts, QuantityError, parse_amounts

MIGRATION = "PodMigrationJob.scheduling.koordinator.sh"
RESERVATION = "Reservation.scheduling.koordinator.sh"
PENDING, RUNNING, SUCCEEDED, FAILED, ABORTED = "Pending", "Running", "Succeeded", "Failed", "Aborted"
OVER = (SUCCEEDED, FAILED, ABORTED)
PASSED = "descheduler.koordinator.sh/passed-arbitration"
ORIGIN = "tidegate.dev/migrates"
"""JSON on a job that has begun: when it did, and the node and the workload of its pod, which outlive the pod."""
STRATEGY = "tidegate.dev/strategy"
"""Who asked for the move, on jobs that this service made."""

TARGET = "tidegate.dev/target-node"
"""The node that the plan chose, on jobs that this service made for one."""

EVIDENCE = "tidegate.dev/evidence"
"""JSON on jobs that this service made: ``why`` in a sentence, and what the pod ``uses`` by the last report, as quantities."""

CREATED, SCHEDULED, EVICTION = "ReservationCreated", "ReservationScheduled", "Eviction"
BOUND, READY = "ReservationPodBoundReservation", "BoundPodReady"
NO_TTL_MS = 1_800_000
"""A job without a time limit has this one."""
KEPT_MS = 3_600_000
"""How long a job that is over is kept for people to look at."""
REST_MS = 900_000
"""How long a plan leaves a pod alone of which a move came to nothing."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One job. ``pod_uid`` is empty where it was made without and has not begun."""

    item: Object

    @property
    def key(self) -> Key:
        return self.item.key

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def phase(self) -> str:
        return str(self.item.status.get("phase") or PENDING)

    @property
    def is_over(self) -> bool:
        return self.phase in OVER

    @property
    def begun(self) -> bool:
        return self.phase == RUNNING

    @property
    def paused(self) -> bool:
        return bool(self.item.spec.get("paused"))

    @property
    def dormant(self) -> bool:
        """Whether it is paused before it has begun: perhaps it never will."""
        return self.paused and not self.begun and not self.is_over

    @property
    def pod(self) -> Key:
        told = self.item.spec.get("podRef") or {}
        return Key(POD, str(told.get("namespace") or "default"), str(told.get("name") or ""))

    @property
    def pod_uid(self) -> str:
        return str((self.item.spec.get("podRef") or {}).get("uid") or "")

    @property
    def direct(self) -> bool:
        """Whether the pod is evicted without a reservation."""
        return self.item.spec.get("mode") == EVICT_DIRECTLY

    @property
    def strategy(self) -> str:
        return str(self.item.annotations.get(STRATEGY) or "")

    @property
    def target(self) -> str:
        """Where the plan behind the job wants the pod; empty for anywhere."""
        return str(self.item.annotations.get(TARGET) or "")

    @property
    def successor_uid(self) -> str:
        """The uid of the pod that came in the place of the one that was moved; empty before."""
        return str((self.item.status.get("podRef") or {}).get("uid") or "")

    @property
    def uses(self) -> Amounts:
        """What its pod used when the move was planned; nothing where nobody knew."""
        try:
            return parse_amounts(self._note(EVIDENCE).get("uses"))
        except (AttributeError, QuantityError):
            return {}

    @property
    def reservation(self) -> Key:
        """The one that was given, else the one that is made for it."""
        given = (self.item.spec.get("reservationOptions") or {}).get("reservationRef") or {}
        return Key(RESERVATION, "", str(given.get("name") or self.name))

    @property
    def brings_reservation(self) -> bool:
        """Whether the reservation is somebody else's."""
        return bool((self.item.spec.get("reservationOptions") or {}).get("reservationRef"))

    @property
    def may_displace(self) -> bool:
        """Whether others may be moved out of the way of its reservation."""
        return (self.item.spec.get("reservationOptions") or {}).get("preemptionOptions") is not None

    @property
    def left_node(self) -> str:
        """The node that its pod is to leave; empty before it has begun."""
        return str(self._origin.get("node") or "")

    @property
    def workload(self) -> str:
        """The uid of its pod's workload; empty before it has begun, and for a bare pod."""
        return str(self._origin.get("workload") or "")

    @property
    def began_at(self) -> int | None:
        """When it began, in ms since the epoch."""
        at = self._origin.get("at")
        return moment(str(at)) if at else None

    @property
    def _origin(self) -> Manifest:
        return self._note(ORIGIN)

    def _note(self, name: str) -> Manifest:
        """JSON in an annotation; empty for what is none."""
        try:
            found = read_json(self.item.annotations.get(name) or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def evicted_at(self) -> int | None:
        """When the eviction was ordered, in ms since the epoch; None before."""
        told = self.condition(EVICTION)
        return moment(str(told.get("lastTransitionTime") or "")) if told.get("reason") in _ORDERED else None

    @property
    def ends_at(self) -> int:
        """When it fails for want of time."""
        return moment(self.item.created) + self.ttl_ms

    @property
    def ttl_ms(self) -> int:
        try:
            return parse_duration(str(self.item.spec.get("ttl") or "0")) or NO_TTL_MS
        except ValueError:
            return NO_TTL_MS

    @property
    def ended_at(self) -> int:
        """When it was over, if it is."""
        times = [str(one.get("lastTransitionTime") or "") for one in self.item.status.get("conditions") or ()]
        return max([moment(self.item.created), *map(moment, times)])

    @property
    def cleared_at(self) -> int:
        """When it is deleted, if it is over."""
        return self.ended_at + KEPT_MS

    def condition(self, kind: str) -> Manifest:
        """A condition of its status; empty where there is none."""
        listed: Any = self.item.status.get("conditions") or ()
        return next((one for one in listed if one.get("type") == kind), {})


_ORDERED = ("Evicting", "EvictComplete")
