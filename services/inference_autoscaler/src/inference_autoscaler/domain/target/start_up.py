"""How long a replica takes from when it is created until it serves, as the pods of a service showed it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kube import Manifest, Object, parse_time
from kube.pods import has_condition

FIRST_START_MS = 60_000
"""What is assumed of a service none of whose pods was ever ready."""
_KEPT = 20
_PERCENT = 90
_LEAST_MS, _MOST_MS = 1_000, 1_800_000


@dataclass(slots=True)
class StartUps:
    """``shown`` are the pods that were ready, by uid, with the milliseconds they took; the latest are kept."""

    shown: dict[str, int] = field(default_factory=dict)

    def learn(self, pods: Iterable[Object]) -> None:
        """Take in pods. Each teaches once: one that gets ready again did not start again."""
        fresh = [(pod.created, pod.uid, _took(pod)) for pod in pods if pod.uid not in self.shown and is_ready(pod)]
        for _, uid, took in sorted(fresh):
            self.shown[uid] = took
        for uid in [*self.shown][: max(0, len(self.shown) - _KEPT)]:
            del self.shown[uid]

    @property
    def start_ms(self) -> int:
        """What nine of ten pods did not take longer than."""
        if not self.shown:
            return FIRST_START_MS
        ordered = sorted(self.shown.values())
        return min(max(ordered[(len(ordered) - 1) * _PERCENT // 100], _LEAST_MS), _MOST_MS)

    def etas(self, pods: Iterable[Object], wanted: int, ready: int, now: int) -> list[int]:
        """In how many milliseconds each of those that are wanted and do not serve yet will; one that is not made takes all of it."""
        waited = [now - parse_time(pod.created) for pod in pods if not pod.deleting and not is_ready(pod)]
        missing = max(0, wanted - ready)
        left = sorted(max(0, self.start_ms - since) for since in waited)[:missing]
        return left + [self.start_ms] * (missing - len(left))

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {**self.shown}


def is_ready(pod: Object) -> bool:
    """Whether it serves."""
    return has_condition(pod.status, "Ready")


def _took(pod: Object) -> int:
    turned = next(one.get("lastTransitionTime") for one in pod.status["conditions"] if one.get("type") == "Ready")
    return parse_time(str(turned)) - parse_time(pod.created) if turned else FIRST_START_MS
