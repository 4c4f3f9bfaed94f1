"""The deciding services as a policy sets them up: what each is made of, by name."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bus import Bus
from chassis import Clock, Decider, Measures, Role, Workplace
from chassis.core import Core
from descheduler import role as moving
from descheduler.domain.core import DeschedulerCore
from descheduler.domain.policy.policy import DeschedulerPolicy
from gang_scheduler import role as scheduling
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.terms.load_policy import LoadPolicy
from inference_autoscaler import role as sizes
from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.policy import AutoscalerPolicy
from job_controller import role as jobs
from job_controller.domain.core import JobCore
from kube import Manifest
from queue_manager import role as queues
from queue_manager.domain.core import QueueCore
from queue_manager.domain.policy import QueuePolicy
from queue_manager.domain.quotas.kueue_policy import KueuePolicy
from slo_controller import role as slos
from slo_controller.domain import SloCore, SloPolicy
from tidegate.services import DECIDERS

ROLES: Mapping[str, tuple[str, ...]] = {
    "scheduler": ("gang_scheduler", "queue_manager"),
    "controllers": ("job_controller", "descheduler", "slo_controller"),
    "autoscaler": ("inference_autoscaler",),
    "agents": (),
    "all": DECIDERS,
}
"""Which services a part of the system stands for, as scenarios name the parts."""

DECIDING: Mapping[str, Role] = {
    role.service: role for role in (jobs.ROLE, queues.ROLE, scheduling.ROLE, moving.ROLE, slos.ROLE, sizes.ROLE)
}
"""What the deciding services are, by name."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The choices of a scenario that services of today can follow."""

    queues: QueuePolicy
    scheduling: Manifest
    """The keywords of SchedulerCore."""

    lending: SloPolicy = field(default_factory=SloPolicy)
    moving: DeschedulerPolicy = field(default_factory=DeschedulerPolicy)
    sizes: AutoscalerPolicy = field(default_factory=AutoscalerPolicy)

    @classmethod
    def told(cls, settings: Mapping[str, Manifest]) -> "Policy":
        """The choices that running services say were made, by service; what one does not say is as by default."""
        queues = dict(settings.get("queue_manager", {}))
        kueue = KueuePolicy(**queues.pop("kueue", {}))
        moving = DeschedulerPolicy.of(settings.get("descheduler", {}))
        lending = SloPolicy(**settings.get("slo_controller", {}))
        sizes = AutoscalerPolicy.told(settings.get("inference_autoscaler", {}))
        return cls(QueuePolicy(**queues, kueue=kueue), settings.get("gang_scheduler", {}), lending, moving, sizes)

    @classmethod
    def of(cls, policy: Manifest) -> "Policy":
        """Read a scenario's ``policy``; raises ValueError for a choice that there is not."""
        overcommit = policy.get("overcommit")
        queueing = str(policy.get("queueing", "proportion"))
        queues = QueuePolicy(
            overcommit=None if overcommit is None else str(overcommit),
            queueing=queueing,
            strict_fifo=policy.get("ordering") == "strict-fifo",
            fair=policy.get("ordering") == "fair",
            fifo=policy.get("ordering") == "fifo",
            kueue=KueuePolicy.of(policy.get("kueue") or {}),
        )
        scheduling: Manifest = {
            "placement": str(policy.get("placement", "binpack")),
            "gang_eviction": str(policy.get("gangEviction", "whole")),
            "strict_fifo": queues.strict_fifo,
            "fifo": queues.fifo,
            "load": LoadPolicy.of(policy.get("loadAware")),
            "revocable_zones": str(policy.get("revocableZones", "")),
            **{name: bool(policy.get(name, True)) for name in ("preemption", "reclaim", "backfill")},
        }
        lending = SloPolicy.of(policy.get("colocation") or {}, policy.get("nodeAgent") or {})
        moving, sizes = (
            DeschedulerPolicy.of(policy.get("descheduler") or {}),
            AutoscalerPolicy.of(policy.get("autoscaler") or {}),
        )
        return cls(queues, scheduling, lending, moving, sizes)


def core_of(service: str, policy: Policy) -> Core:
    """A new core of a deciding service."""
    make: dict[str, Callable[[], Core]] = {
        "gang_scheduler": lambda: SchedulerCore(**policy.scheduling),
        "queue_manager": lambda: QueueCore(policy.queues),
        "descheduler": lambda: DeschedulerCore(policy.moving),
        "slo_controller": lambda: SloCore(policy.lending),
        "job_controller": JobCore,
        "inference_autoscaler": lambda: AutoscalerCore(policy.sizes),
    }
    return make[service]()


def decider(service: str, policy: Policy, bus: Bus, clock: Clock, gate: asyncio.Event) -> Decider:
    """A deciding service under this policy."""
    workplace = Workplace(bus, clock, Measures(service), gate=gate)
    return Decider(DECIDING[service], lambda: core_of(service, policy), workplace)
