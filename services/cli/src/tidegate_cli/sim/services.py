"""The deciding services as a policy sets them up: what each is made of, by name."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bus import Bus
from chassis import Clock, Decider
from chassis.core import Core
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.load_policy import LoadPolicy
from job_controller.domain.core import JobCore, concerns
from kube import Manifest
from queue_manager.domain.core import QueueCore
from queue_manager.domain.kueue_policy import KueuePolicy
from queue_manager.domain.policy import QueuePolicy
from tidegate.codec.facts import Interest

ROLES: Mapping[str, tuple[str, ...]] = {
    "scheduler": ("gang_scheduler", "queue_manager"),
    "controllers": ("job_controller",),
    "autoscaler": (),
    "agents": (),
    "all": ("job_controller", "queue_manager", "gang_scheduler"),
}
"""Which services a part of the system stands for, as scenarios name the parts."""

Make = Callable[[Bus, Clock, asyncio.Event], Decider]


@dataclass(frozen=True, slots=True)
class Policy:
    """The choices of a scenario that services of today can follow."""

    queues: QueuePolicy
    scheduling: Manifest
    """The keywords of SchedulerCore."""

    @classmethod
    def told(cls, settings: Mapping[str, Manifest]) -> "Policy":
        """The choices that running services say were made, by service; what one does not say is as by default."""
        queues = dict(settings.get("queue_manager", {}))
        kueue = KueuePolicy(**queues.pop("kueue", {}))
        return cls(QueuePolicy(**queues, kueue=kueue), settings.get("gang_scheduler", {}))

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
            kueue=KueuePolicy.of(policy.get("kueue") or {}),
        )
        scheduling: Manifest = {
            "placement": str(policy.get("placement", "binpack")),
            "gang_eviction": str(policy.get("gangEviction", "whole")),
            "strict_fifo": queues.strict_fifo,
            "load": LoadPolicy.of(policy.get("loadAware")),
            **{name: bool(policy.get(name, True)) for name in ("preemption", "reclaim", "backfill")},
        }
        return cls(queues, scheduling)


def core_of(service: str, policy: Policy) -> tuple[Core, Interest | None]:
    """A new core of a deciding service, and what it takes an interest in."""
    if service == "gang_scheduler":
        return SchedulerCore(**policy.scheduling), None
    return (QueueCore(policy.queues), None) if service == "queue_manager" else (JobCore(), concerns)


def deciders(policy: Policy) -> dict[str, Make]:
    """How to make each deciding service."""
    return {
        "job_controller": lambda bus, clock, gate: Decider(
            "job_controller", JobCore, bus, clock, interest=concerns, gate=gate
        ),
        "queue_manager": lambda bus, clock, gate: Decider(
            "queue_manager",
            lambda: QueueCore(policy.queues),
            bus,
            clock,
            queries=("explain", "queue", "settings"),
            gate=gate,
        ),
        "gang_scheduler": lambda bus, clock, gate: Decider(
            "gang_scheduler",
            lambda: SchedulerCore(**policy.scheduling),
            bus,
            clock,
            inputs=("queue_manager",),
            queries=("explain", "settings"),
            gate=gate,
        ),
    }
