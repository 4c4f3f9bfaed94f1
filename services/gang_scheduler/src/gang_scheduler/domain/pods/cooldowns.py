"""Pods that are spared for a while after they were bound: Volcano's annotation or label ``volcano.sh/cooldown-time``."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gang_scheduler.domain.pods.pod_record import PodRecord
from kube import Key, Object, parse_duration

COOLDOWN = "volcano.sh/cooldown-time"


@dataclass(slots=True)
class Cooldowns:
    """Most pods have none, and cost nothing here. Times are milliseconds since the epoch."""

    _known: dict[Key, tuple[PodRecord, int]] = field(default_factory=dict)
    """The pods that have one, and how long it is."""

    _seen: int = 0

    def come(self, records: Iterable[PodRecord]) -> None:
        """Pods are there, or say something else now."""
        for record in records:
            length = _length_of(record.pod)
            if length:
                self._known[record.key] = (record, length)
            else:
                self.go(record)

    def go(self, record: PodRecord) -> None:
        """The pod is no more."""
        self._known.pop(record.key, None)

    def spares(self, record: PodRecord, now: int) -> bool:
        """Whether the pod was bound so short a time ago that it is not evicted."""
        found = self._known.get(record.key) if self._known else None
        return found is not None and now < record.bound_at() + found[1]

    def next_end(self, now: int) -> int | None:
        """When the next pod may be evicted that is spared now."""
        return min((end for end in self._ends() if end > now), default=None)

    def ended(self, now: int) -> bool:
        """Whether any came to its end since this was asked last."""
        before, self._seen = self._seen, now
        return any(before < end <= now for end in self._ends())

    def _ends(self) -> Iterator[int]:
        return (record.bound_at() + length for record, length in self._known.values() if record.node)


def has_cooldown(pod: Object) -> bool:
    """Whether a pod says anything about it."""
    return COOLDOWN in pod.annotations or COOLDOWN in pod.labels


def _length_of(pod: Object) -> int:
    """Milliseconds; 0 where there is none, or none that makes sense."""
    try:
        return parse_duration(str(pod.annotations.get(COOLDOWN) or pod.labels.get(COOLDOWN) or "0"))
    except ValueError:
        return 0
