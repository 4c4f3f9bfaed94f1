"""From zero to one and back: what KEDA does itself. Between one and the maximum the autoscaler that it makes decides."""

from dataclasses import dataclass

from inference_autoscaler.domain.keda.scaled_object import Scaled


@dataclass(frozen=True, slots=True)
class Poll:
    """What the triggers say together. ``failing`` says that one of them could not tell."""

    active: bool
    failing: bool


@dataclass(frozen=True, slots=True)
class Step:
    """The size after a poll, and why; an empty ``why`` is no change."""

    replicas: int
    why: str = ""


def step(spec: Scaled, replicas: int, poll: Poll, last_active: int | None, created: int, now: int) -> Step:
    """What becomes of ``replicas``. ``last_active`` is when a trigger was active last; None is never."""
    if spec.paused is not None:
        kept = replicas if spec.paused < 0 else spec.paused
        return Step(kept, "" if kept == replicas else f"it is paused at {kept}")
    if poll.active:
        floor = max(1, spec.minimum)
        wakes = replicas == 0 or (spec.idle is not None and replicas < spec.minimum)
        return Step(floor, "a trigger is active") if wakes else Step(replicas)
    if poll.failing:
        return Step(replicas)
    if _may_sleep(spec, replicas):
        return _to_sleep(spec, replicas, last_active, created, now)
    if replicas < spec.minimum and spec.idle is None:
        return Step(spec.minimum, "it has fewer replicas than minReplicaCount")
    return Step(replicas)


def waits(spec: Scaled, replicas: int, poll: Poll) -> bool:
    """Whether a later poll that says the same comes to another size: when the cooldown is over."""
    return spec.paused is None and not poll.active and not poll.failing and _may_sleep(spec, replicas)


def _may_sleep(spec: Scaled, replicas: int) -> bool:
    return replicas > spec.asleep and (spec.idle is not None or spec.minimum == 0)


def _to_sleep(spec: Scaled, replicas: int, last_active: int | None, created: int, now: int) -> Step:
    """Down to the size of sleep in one step, once the cooldown is over."""
    if last_active is None:
        over = created + spec.initial_cooldown_ms <= now
        return Step(spec.asleep, "no trigger was ever active") if over else Step(replicas)
    over = last_active + spec.cooldown_ms < now
    seconds = spec.cooldown_ms // 1000
    return Step(spec.asleep, f"no trigger was active for {seconds} s") if over else Step(replicas)
