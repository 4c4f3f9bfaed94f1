"""The conditions of a ScaledObject, in KEDA's words."""

from inference_autoscaler.domain.keda.executor import Poll
from inference_autoscaler.domain.keda.scaled_object import Scaled
from kube import Manifest

READY = "ScaledObject is defined correctly and is ready for scaling"


def conditions(spec: Scaled, poll: Poll, error: str, falls_back: bool) -> list[Manifest]:
    """What is told of a poll. ``error`` is the first failure of a source, ``falls_back`` whether one is on fallback."""
    if not error:
        ready = ("True", "ScaledObjectReady", READY)
    elif poll.active:
        ready = ("Unknown", "PartialTriggerError", error)
    else:
        ready = ("False", "TriggerError", error)
    active = (
        ("True", "ScalerActive", "Scaling is performed because triggers are active")
        if poll.active
        else ("False", "ScalerNotActive", "Scaling is not performed because triggers are not active")
    )
    fallback = (
        ("True", "FallbackExists", "At least one trigger is falling back on this scaled object")
        if falls_back
        else ("False", "NoFallbackFound", "No fallbacks are active on this scaled object")
    )
    paused = (
        ("True", "ScaledObjectPaused", "ScaledObject is paused")
        if spec.paused is not None
        else ("False", "ScaledObjectUnpaused", "pause annotation removed for ScaledObject")
    )
    named = {"Ready": ready, "Active": active, "Fallback": fallback, "Paused": paused}
    return [
        {"type": name, "status": status, "reason": reason, "message": message}
        for name, (status, reason, message) in named.items()
    ]


def failed(message: str) -> list[Manifest]:
    """What is told where nothing can be scaled."""
    return [{"type": "Ready", "status": "False", "reason": "ScaledObjectCheckFailed", "message": message}]
