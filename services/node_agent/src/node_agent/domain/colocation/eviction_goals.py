"""What has to be freed on a node, and by whom: one goal for each reason to evict that holds now."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from node_agent.domain.colocation.history import History, Round, mean, within
from node_agent.domain.colocation.node_slo import Thresholds
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.samples import Sample
from node_agent.domain.colocation.situation import Situation
from resources.amounts import format_amount

BATCH_CPU, MID_CPU = "kubernetes.io/batch-cpu", "kubernetes.io/mid-cpu"
BATCH_MEMORY, MID_MEMORY = "kubernetes.io/batch-memory", "kubernetes.io/mid-memory"
LOWER_BY_DEFAULT = 2
"""Percent below a threshold to which use has to come down, where the rules do not say."""
SPIKE_ROUNDS = 3
"""CPU use has to be seen above its threshold so many times."""
SPIKE_MS = 10_000
LEAST_LIMIT_MILLI = 1_000
"""Held to less than that, best effort counts as busy whatever it uses."""


class Kind(Enum):
    """What is short."""

    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Goal:
    """``amount`` has to be freed (milli-cores or bytes), by pods that ``may`` go; ``weight`` orders pods of one priority."""

    kind: Kind
    feature: str
    amount: int
    frees: Callable[[NodePod], int]
    may: Callable[[NodePod], bool]
    weight: Callable[[NodePod], int]
    why: str

    def features_of(self, pod: NodePod) -> frozenset[str]:
        """The names by which pods allow or forbid evictions for this reason."""
        return frozenset((self.feature, f"BE{self.feature}") if _best_effort(pod) else (self.feature,))

    def described(self, pod: NodePod) -> str:
        """Why this pod has to go, in words."""
        return f"{self.why}; {pod.title} (priority {pod.priority}) frees {_shown(self.kind, self.frees(pod))}"


def goals(situation: Situation, history: History) -> Iterator[Goal]:
    """The goals of now. Percents are whole ones, as the thresholds are."""
    sample = situation.fresh
    if sample is None:
        return
    yield from _starved(situation, sample, history)
    yield from _overlent(situation)
    yield from _busy(situation, sample, history)
    yield from _full(situation, sample)


def _starved(situation: Situation, sample: Sample, history: History) -> Iterator[Goal]:
    """Best effort is held to too small a part of what it asked for, uses all of it, and that for a while."""
    rules = situation.slo.thresholds
    low, high = rules.satisfied_lower_percent, rules.satisfied_upper_percent
    if low is None or high is None or not 0 < low <= 60 or not low < high < 100:
        return
    window_ms = rules.window_seconds * 1000
    rounds = within(history, situation.now, window_ms)
    if not rounds or len(rounds) * 3 < rules.window_seconds:
        return
    lent = situation.machine.allocatable.get(BATCH_CPU, 0) if rules.by_allocatable else None
    if lent == 0:  # a node that lends nothing (any more) says nothing of what it lent before
        return
    newest = rounds[-1]
    need = _missing(newest, rules, low, high, lent)
    if need > 0:
        means = Round(0, *(mean([one[field] for one in rounds]) for field in range(1, 5)))
        need = min(need, _missing(means, rules, low, high, lent))
    if need > 0:
        limit = newest.limit if lent is None else lent
        yield Goal(
            Kind.CPU,
            "CPUEvict",
            need,
            lambda pod: pod.requests.get(BATCH_CPU, 0),
            lambda pod: _best_effort(pod) and pod.willing is not False,
            lambda pod: sample.of(pod.uid).cpu_milli * 1000 // max(1, pod.requests.get(BATCH_CPU, 0)),
            f"best effort asked for {newest.requested}m, has {limit}m ({limit * 100 // newest.requested} %, below {low} %) "
            f"and uses {newest.used}m; to have {high} % {_shown(Kind.CPU, need)} of requests have to go",
        )


def _missing(one: Round, rules: Thresholds, low: int, high: int, lent: int | None) -> int:
    """How much of the requests has to go for the rest to have ``high`` percent; 0 where all is well."""
    if one.requested <= 0:
        return 0
    limit = one.limit if lent is None else lent
    busy = limit < LEAST_LIMIT_MILLI or one.used * 100 >= limit * rules.busy_percent
    if limit * 100 > one.requested * low or not busy:
        return 0
    return (one.requested * high - limit * 100) // 100


def _overlent(situation: Situation) -> Iterator[Goal]:
    """More was asked for than the node lends by now, by pods that could be evicted for it.

    A node that lends nothing (any more) says nothing of this.
    """
    rules = situation.slo.thresholds
    limits = (
        (Kind.CPU, "CPUAllocatableEvict", rules.cpu_allocatable_percent, rules.cpu_allocatable_lower_percent, (BATCH_CPU, MID_CPU)),
        (
            *(Kind.MEMORY, "MemoryAllocatableEvict", rules.memory_allocatable_percent),
            *(rules.memory_allocatable_lower_percent, (BATCH_MEMORY, MID_MEMORY)),
        ),
    )  # fmt: skip
    if rules.allocatable_priority is None:
        return
    highest = rules.allocatable_priority
    for kind, feature, percent, lower, names in limits:
        if percent is None or lower is None or lower >= percent:
            continue
        for name in names:
            yield from _overlent_resource(situation, kind, feature, percent, lower, name, highest)


def _overlent_resource(
    situation: Situation, kind: Kind, feature: str, percent: int, lower: int, name: str, highest: int
) -> Iterator[Goal]:
    lent = situation.machine.allocatable.get(name, 0)
    asked = sum(pod.requests.get(name, 0) for pod in situation.pods.values() if pod.priority <= highest)
    if lent > 0 and asked * 100 > lent * percent:
        yield Goal(
            kind,
            feature,
            asked - lent * lower // 100,
            lambda pod: pod.requests.get(name, 0),
            lambda pod: pod.willing is True and pod.priority <= highest,
            lambda pod: pod.requests.get(name, 0),
            f"{_shown(kind, asked)} of {name} were asked for, above {percent} % of {_shown(kind, lent)} that the node lends; "
            f"down to {lower} %",
        )


def _busy(situation: Situation, sample: Sample, history: History) -> Iterator[Goal]:
    rules, capacity = situation.slo.thresholds, situation.machine.cpu_milli
    percent, highest = rules.cpu_percent, rules.willing_priority
    rounds = within(history, situation.now, SPIKE_MS)
    if percent is None or highest is None or capacity <= 0 or len(rounds) < SPIKE_ROUNDS:
        return
    used = min(mean([one.node for one in rounds]), sample.node.cpu_milli)
    lower = _lower(percent, rules.cpu_lower_percent)
    if lower < percent <= used * 100 // capacity:
        yield Goal(
            Kind.CPU,
            "CPUEvict",
            used - capacity * lower // 100,
            lambda pod: sample.of(pod.uid).cpu_milli,
            lambda pod: pod.willing is True and pod.priority <= highest,
            lambda pod: sample.of(pod.uid).cpu_milli,
            f"the node uses {used}m of {capacity}m CPU ({used * 100 // capacity} %, from {percent} % on); down to {lower} %",
        )


def _full(situation: Situation, sample: Sample) -> Iterator[Goal]:
    rules, capacity = situation.slo.thresholds, situation.machine.memory_bytes
    if capacity <= 0:
        return
    used, percent = sample.node.memory_bytes, rules.memory_percent
    highest, lower = rules.willing_priority, _lower(percent, rules.memory_lower_percent)
    is_percent = used * 100 // capacity
    if lower < percent <= is_percent:
        yield Goal(
            Kind.MEMORY,
            "MemoryEvict",
            capacity * (is_percent - lower) // 100,
            lambda pod: sample.of(pod.uid).memory_bytes,
            lambda pod: (
                (_best_effort(pod) and pod.willing is not False)
                or (pod.willing is True and highest is not None and pod.priority <= highest)
            ),
            lambda pod: sample.of(pod.uid).memory_bytes,
            f"the node uses {_shown(Kind.MEMORY, used)} of {_shown(Kind.MEMORY, capacity)} memory "
            f"({is_percent} %, from {percent} % on); down to {lower} %",
        )


def _best_effort(pod: NodePod) -> bool:
    """Whether a pod is best effort and says so: one that merely asks for nothing is not sent away as such."""
    return pod.declared and not pod.online


def _lower(percent: int, lower: int | None) -> int:
    return percent - LOWER_BY_DEFAULT if lower is None else lower


def _shown(kind: Kind, amount: int) -> str:
    return format_amount(kind.value, amount)


def window_ms(rules: Thresholds) -> int:
    """For how long rounds have to be remembered."""
    return max(SPIKE_MS, rules.window_seconds * 1000)


def newest_round(situation: Situation, limit_milli: int) -> Round | None:
    """This round, for the history; None without a fresh sample. ``limit_milli`` is what best effort was held to until now."""
    sample = situation.fresh
    if sample is None:
        return None
    pods: Sequence[NodePod] = situation.best_effort
    requested = sum(pod.requests.get(BATCH_CPU, 0) for pod in pods)
    used = sum(sample.of(pod.uid).cpu_milli for pod in pods)
    return Round(situation.now, limit_milli, requested, used, sample.node.cpu_milli)
