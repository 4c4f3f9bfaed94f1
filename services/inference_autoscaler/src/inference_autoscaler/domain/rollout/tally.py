"""What each revision answered: counters that its gateways hand in, summed over who counts and over their restarts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube import Manifest

REQUESTS, ERRORS, LATENCY = "revision_requests_total", "revision_errors_total", "revision_latency_bucket"
"""Metrics of MetricReadings of an InferenceService, each with the label ``revision``. They only ever grow, but for a restart
of who counts. Errors are answers 5xx and requests without an answer; a bucket has the requests that were answered within the
milliseconds of its label ``le``."""
COUNTED = frozenset([REQUESTS, ERRORS, LATENCY])
REVISION, BOUND = "revision", "le"

Counts = dict[str, int]
"""By ``requests``, ``errors``, and the bounds of the latency."""


def counter_of(metric: str, labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Of which revision a reading is, and what it counts; None where it does not say it."""
    revision = labels.get(REVISION, "")
    if metric != LATENCY:
        return (revision, "requests" if metric == REQUESTS else "errors") if revision else None
    bound = labels.get(BOUND, "")
    return (revision, bound) if revision and bound.isdigit() else None


@dataclass(slots=True)
class Tally:
    """Of one revision. ``last`` is what each source said last, with the revision of the facts, by the name of its object."""

    total: Counts = field(default_factory=dict)
    last: dict[str, tuple[int, int]] = field(default_factory=dict)

    def hear(self, source: str, name: str, value: int, said: int) -> bool:
        """Take in that ``source`` had counted ``value``, as it ``said`` at that revision of the facts. Whether it is news.

        Who begins anew is told things a second time that are in what he remembers.
        """
        heard, before = self.last.get(source, (-1, 0))
        if said <= heard:
            return False
        self.last[source] = said, value
        self.total[name] = self.total.get(name, 0) + (value - before if value >= before else value)
        return value != before or heard < 0

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {"total": {**self.total}, "last": {**self.last}}

    @classmethod
    def of(cls, told: Manifest) -> "Tally":
        """As it was written down."""
        return cls({**told["total"]}, {source: (said, value) for source, (said, value) in told["last"].items()})


def since(now: Counts, then: Counts) -> Counts:
    """What was counted between."""
    return {name: count - then.get(name, 0) for name, count in now.items()}
