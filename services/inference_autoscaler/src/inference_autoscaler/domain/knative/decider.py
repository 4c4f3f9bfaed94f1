"""How many pods a revision needs: Knative's calculation, every two seconds."""

from dataclasses import dataclass, field

from inference_autoscaler.domain.exact import REPLICAS_MAX, ceil_div
from inference_autoscaler.domain.knative.load import Load
from inference_autoscaler.domain.knative.scaling import Scaling
from kube import Manifest

TICK_MS = 2_000


@dataclass(slots=True)
class Panic:
    """Since when there is reason to panic (None: there is none), the most that was wanted meanwhile, and what was wanted before.

    ``wanted`` are (since when, pods), each until the next; they are kept as long as the delay for shrinking reaches back.
    """

    since: int | None = None
    most: int = 0
    wanted: list[tuple[int, int]] = field(default_factory=list)

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        self.since = None if self.since is None else min(self.since, now)
        self.wanted = [(min(at, now), pods) for at, pods in self.wanted]

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {"since": self.since, "most": self.most, "wanted": [*self.wanted]}

    @classmethod
    def of(cls, told: Manifest) -> "Panic":
        """As it was written down."""
        return cls(told["since"], told["most"], [(at, pods) for at, pods in told["wanted"]])


@dataclass(frozen=True, slots=True)
class Wish:
    """How many pods, and by what. ``in_panic`` says that nothing is taken away for a while."""

    pods: int
    why: str
    in_panic: bool = False
    excess_milli: int = 0
    """What the pods could bear beyond the load and the burst that is kept free; below 0 requests are held in between."""


def wish(scaling: Scaling, load: Load, panic: Panic, ready: int, now: int, percent: int = 100) -> Wish | None:
    """What is wanted at ``now`` of a revision of which ``ready`` pods serve, and which has ``percent`` of the load.

    None while nothing is known: it stays as it is.
    """
    stable = load.average(now - scaling.window_ms, now)
    if stable is None:
        return None
    recent = load.average(now - scaling.panic_window_ms, now) or stable
    counted = max(1, ready)
    by_stable, by_recent = _pods(scaling, stable, percent), _pods(scaling, recent, percent)
    top = ceil_div(scaling.up_rate_milli * counted, 1000)
    floor = counted * 1000 // scaling.down_rate_milli
    slow, fast = _activated(scaling, by_stable, floor, top), _activated(scaling, by_recent, floor, top)
    if by_recent * 1000 >= scaling.panic_threshold_milli * counted:
        panic.since = now
    elif panic.since is not None and panic.since + scaling.window_ms < now:
        panic.since, panic.most = None, 0
    wanted = slow
    if panic.since is not None:
        panic.most = wanted = max(panic.most, slow, fast)
    delayed = _delayed(scaling, panic, wanted, now)
    excess = scaling.total_milli * ready - scaling.burst_milli - ceil_div(recent[0] * percent, recent[1] * 100)
    why = f"{_shown(stable)} {scaling.metric} over the window, {_shown(recent)} of late, {_micro(scaling.target_micro)} a pod"
    return Wish(min(delayed, REPLICAS_MAX), why, panic.since is not None, excess)


def _pods(scaling: Scaling, average: tuple[int, int], percent: int) -> int:
    total, known = average
    return ceil_div(total * 10 * percent, known * scaling.target_micro)


def _activated(scaling: Scaling, pods: int, floor: int, top: int) -> int:
    clamped = min(max(pods, floor), top)
    return max(clamped, scaling.activation) if pods > 0 and scaling.activation > 1 else clamped


def _delayed(scaling: Scaling, panic: Panic, wanted: int, now: int) -> int:
    """The most that was wanted for the time of the delay."""
    if not scaling.down_delay_ms:
        panic.wanted = []
        return wanted
    if not panic.wanted or panic.wanted[-1][1] != wanted:
        panic.wanted.append((now, wanted))
    ends = [*(at for at, _ in panic.wanted[1:]), now + 1]
    panic.wanted = [one for one, end in zip(panic.wanted, ends, strict=True) if end > now - scaling.down_delay_ms]
    return max(pods for _, pods in panic.wanted)


def _shown(average: tuple[int, int]) -> str:
    hundredths = average[0] // (average[1] * 10)
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def _micro(amount: int) -> str:
    return f"{amount // 1_000_000}.{amount // 10_000 % 100:02d}"
