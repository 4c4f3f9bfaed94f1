"""Containers that were killed because they wanted more memory than they had: they are to ask for more the next time.

Source: the Vertical Pod Autoscaler's ``pkg/recommender/model/container.go``: what it had, and 20 % or 100 MB on top.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kube import Key, Manifest, Object, parse_time
from resources import QuantityError, parse_quantity

KILLED = "OOMKilled"
LEAST_MORE, MORE_PERCENT = 100_000_000, 120


@dataclass(frozen=True, slots=True)
class Kill:
    """One such end at ``at`` (ms); ``had`` is the memory that the container was given, 0 where nobody said."""

    pod: Key
    container: str
    at: int
    had: int

    def wanted(self, known_peak: int) -> int:
        """How much it would have had to have, as far as anybody can tell."""
        had = self.had or known_peak
        return max(had + LEAST_MORE, had * MORE_PERCENT // 100)


def kills_of(pod: Object) -> tuple[Kill, ...]:
    """The newest of each container of ``pod``, as its node tells it."""
    ended = [
        (str(status.get("name")), max(times))
        for status in pod.status.get("containerStatuses") or ()
        if (times := list(_killed_at(status)))
    ]
    if not ended:  # as with nearly every pod: what its containers may use need not be read
        return ()
    memory = {str(one.get("name")): _memory(one) for one in pod.spec.get("containers") or ()}
    return tuple(Kill(pod.key, name, at, memory[name]) for name, at in ended if name in memory)


def _killed_at(status: Manifest) -> Iterator[int]:
    for name in ("state", "lastState"):
        ended = (status.get(name) or {}).get("terminated") or {}
        if ended.get("reason") == KILLED:
            try:
                yield parse_time(str(ended.get("finishedAt")))
            except ValueError:
                continue


def _memory(container: Manifest) -> int:
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        try:
            return parse_quantity((resources.get(part) or {})["memory"])
        except (KeyError, QuantityError):
            continue
    return 0
