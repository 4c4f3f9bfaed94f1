"""How a service wants its new revisions taken into use: annotations of an InferenceService."""

from collections.abc import Mapping
from dataclasses import dataclass

from inference_autoscaler.domain.rollout.exact_test import TRILLION
from kube import parse_duration
from resources import parse_milli

PREFIX = "tidegate.dev/rollout"
"""Annotation: ``canary`` or ``blue-green``. Those that begin with it and a dash say more."""
_DEFAULT_STEPS = {"canary": "5:2m,20:2m,50:5m,100:5m", "blue-green": "100:10m"}
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """``percent`` of the requests for at least so long; ``time_ms`` None is for good."""

    percent: int
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """``requests`` is how many a revision has answered at least before anything is said about it.

    ``risk`` is the chance that a revision like the one before is taken back, over the whole rollout, in trillionths.
    ``errors`` and ``slower`` are by how much a share has to be higher to matter, in millionths. ``ready_ms`` is how long a
    pod may run without serving, ``lost_ms`` how long none may serve of a revision that did.
    """

    steps: tuple[Step, ...]
    requests: int = 100
    risk: int = TRILLION // 100
    errors: int = 10_000
    slower: int = 50_000
    ready_ms: int = 600_000
    lost_ms: int = 60_000

    @property
    def key(self) -> str:
        """A text that differs where the plan does."""
        steps = ",".join(f"{step.percent}:{step.time_ms}" for step in self.steps)
        return f"{steps}/{self.requests}/{self.risk}/{self.errors}/{self.slower}/{self.ready_ms}/{self.lost_ms}"


def read(annotations: Mapping[str, str], share: int | None) -> Plan | None:
    """What is planned; None where nothing is. Raises ValueError for what makes no sense.

    A ``share`` that the service gives its newest revision is where the steps end.
    """
    kind = annotations.get(PREFIX)
    if kind is None:
        return None
    if kind not in _DEFAULT_STEPS:
        raise ValueError(f"{PREFIX}: {kind} is none of {', '.join(sorted(_DEFAULT_STEPS))}")

    def said(name: str, default: str) -> str:
        return annotations.get(f"{PREFIX}-{name}", default)

    return Plan(
        _until(_steps(said("steps", _DEFAULT_STEPS[kind])), share),
        int(said("requests", "100")),
        parse_milli(said("risk", "1")) * (TRILLION // 100_000),
        parse_milli(said("errors", "1")) * (_MILLION // 100_000),
        parse_milli(said("slower", "5")) * (_MILLION // 100_000),
        parse_duration(said("ready", "10m")),
        parse_duration(said("lost", "1m")),
    )


def _steps(text: str) -> list[Step]:
    steps = []
    for part in text.split(","):
        percent, colon, time = part.strip().partition(":")
        if not colon:
            raise ValueError(f"{PREFIX}-steps: {part} is no step such as 20:5m")
        steps.append(Step(int(percent), parse_duration(time)))
    rising = [0, *(step.percent for step in steps)]
    if rising != sorted(set(rising)) or rising[-1] > 100:
        raise ValueError(f"{PREFIX}-steps: {text} does not rise from above 0 to at most 100")
    return steps


def _until(steps: list[Step], share: int | None) -> tuple[Step, ...]:
    if share is None or share >= 100:
        return tuple(steps)
    return (*(step for step in steps if step.percent < share), Step(share, None))
