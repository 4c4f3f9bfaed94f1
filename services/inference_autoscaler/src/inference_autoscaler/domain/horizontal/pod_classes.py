"""The pods of a target: which count for a metric, which are not ready for it, and of which nothing is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from inference_autoscaler.domain.metrics.reading import Reading
from kube import Manifest, Object, parse_time
from kube.pods import has_condition

CPU = "cpu"
CPU_INITIALIZATION_MS = 300_000
INITIAL_READINESS_MS = 30_000


@dataclass(slots=True)
class PodClasses:
    """Names of pods. ``known`` are the values of those that count, in thousandths; ``missing`` have no sample.

    Who is gone or has failed is nowhere.
    """

    known: dict[str, int]
    unready: list[str]
    missing: list[str]


class Stage(NamedTuple):
    """How far a pod is that is neither gone nor failed. Times are milliseconds.

    ``turned`` is when its readiness changed last; where ``is_known`` is False it says nothing of its start or its readiness.
    """

    name: str
    is_pending: bool
    is_known: bool = False
    is_unready: bool = False
    started: int = 0
    turned: int = 0

    def has_started(self, now: int) -> bool:
        """Whether the time is over in which it matters that the pod started."""
        return self.is_known and self.started + CPU_INITIALIZATION_MS <= now

    def counts(self, sample: Reading, now: int) -> bool:
        """Whether what it uses of cpu is load, and not its start. One that was ready and is not any more counts."""
        if not self.is_known:
            return False
        if self.started + CPU_INITIALIZATION_MS > now:
            return not self.is_unready and sample.at >= self.turned + sample.window_ms
        return not self.is_unready or self.started + INITIAL_READINESS_MS <= self.turned


class Roster:
    """The pods of one target, by name, read once: they are asked about for each metric, in each round."""

    __slots__ = ("pods", "requests", "serving", "stages")

    def __init__(self, pods: Sequence[Object]) -> None:
        self.pods = pods
        self.stages = [stage for pod in pods if (stage := _stage(pod)) is not None]
        self.serving = serving(pods)
        self.requests: dict[tuple[str, str], dict[str, int]] = {}
        """What was once asked for, by resource and container: what each pod requests, in thousandths."""

    def classes(self, samples: Mapping[str, Reading], metric: str, now: int) -> PodClasses:
        """Sort them: readiness matters for cpu only, since starting uses it and says nothing of the load."""
        found, by_cpu = PodClasses({}, [], []), metric == CPU
        for stage in self.stages:
            name = stage.name
            if stage.is_pending:
                found.unready.append(name)
            elif (sample := samples.get(name)) is None:
                found.missing.append(name)
            elif by_cpu and not stage.counts(sample, now):
                found.unready.append(name)
            else:
                found.known[name] = sample.value_milli
        return found

    def has_started(self, now: int) -> bool:
        """Whether no pod's start matters any more."""
        return all(stage.has_started(now) for stage in self.stages)


def serving(pods: Iterable[Object]) -> int:
    """How many of the ``pods`` run and are ready."""
    return sum(pod.status.get("phase") == "Running" and has_condition(pod.status, "Ready") for pod in pods)


def _stage(pod: Object) -> Stage | None:
    status = pod.status
    phase = status.get("phase")
    if pod.deleting or phase == "Failed":
        return None
    is_pending = phase in (None, "Pending")
    listed: Iterable[Manifest] = status.get("conditions") or ()
    condition = next((one for one in listed if one.get("type") == "Ready"), None)
    started = status.get("startTime")
    if condition is None or not started:
        return Stage(pod.name, is_pending)
    turned = parse_time(str(condition.get("lastTransitionTime") or started))
    return Stage(pod.name, is_pending, True, condition.get("status") == "False", parse_time(str(started)), turned)
