"""What the status of an autoscaler with a goal says: how it is, in the words of its kind, and whether the goal decides."""

from dataclasses import dataclass

from inference_autoscaler.domain.cluster.scale import Scale
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.horizontal.status import changed_conditions
from inference_autoscaler.domain.horizontal.verdict import ABLE, ACTIVE
from inference_autoscaler.domain.keda.report import READY
from kube import Manifest, Object, rfc3339

SIZED_BY_GOAL = "SizedByGoal"
PAUSED = "ScaledObjectPaused"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look came to: the condition as ``status``, ``reason`` and ``message``; the size, and why, where there is a target."""

    status: str
    reason: str
    message: str
    scale: Scale | None = None
    replicas: int = 0
    why: str = ""
    is_active: bool = False
    """Whether anything has to be done."""

    @property
    def moves(self) -> bool:
        """Whether there is another size."""
        return self.scale is not None and self.replicas != self.scale.wanted


def status_patch(item: Object, found: Finding, now: int, *, is_ours: bool) -> Manifest:
    """What of the status is to be changed; empty where nothing is. Of an object of others it is the one condition alone."""
    told = [_condition(SIZED_BY_GOAL, found.status, found.reason, found.message)]
    parts: Manifest = {}
    if is_ours:
        told += _horizontal(found) if item.kind == AUTOSCALER else _scaled(found)
        if item.kind == AUTOSCALER and found.scale is not None:
            parts = {"currentReplicas": found.scale.counted, "desiredReplicas": found.replicas}
            if found.moves:
                parts["lastScaleTime"] = rfc3339(now)
    patch = {name: value for name, value in parts.items() if item.status.get(name) != value}
    conditions = changed_conditions(item.status, told, now)
    return {**patch, **({"conditions": conditions} if conditions else {})}


def _horizontal(found: Finding) -> list[Manifest]:
    is_able = found.scale is not None
    able = ("True", "SucceededGetScale", "the size of the target is known")
    return [
        _condition(ABLE, *(able if is_able else ("False", "FailedGetScale", found.message))),
        _condition(ACTIVE, "True" if found.status == "True" else "False", found.reason, found.message),
    ]


def _scaled(found: Finding) -> list[Manifest]:
    if found.reason == PAUSED:
        ready = _condition("Ready", "True", "ScaledObjectReady", READY)
        return [ready, _condition("Paused", "True", PAUSED, "ScaledObject is paused")]
    if found.status != "True":
        return [_condition("Ready", found.status, found.reason, found.message)]
    active = (
        ("True", "ScalerActive", "there are requests")
        if found.is_active
        else ("False", "ScalerNotActive", "there are none")
    )
    unpaused = _condition("Paused", "False", "ScaledObjectUnpaused", "pause annotation removed for ScaledObject")
    return [_condition("Ready", "True", "ScaledObjectReady", READY), _condition("Active", *active), unpaused]


def _condition(name: str, status: str, reason: str, message: str) -> Manifest:
    return {"type": name, "status": status, "reason": reason, "message": message}
