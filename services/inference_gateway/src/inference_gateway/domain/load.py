"""What the replicas of each pool bear: from the proxy's statistics to averages over the time between two readings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_gateway.domain.envoy.layout import pool_of_cluster
from inference_gateway.domain.serving.replica import Pool
from kube import Key, Manifest

ACTIVE = ("upstream_rq_active", "upstream_rq_pending_active")
TOTAL, ANSWERED, FAILED, TIME = "upstream_rq_total", "upstream_rq_completed", "upstream_rq_5xx", "upstream_rq_time"
STATISTICS = rf"^cluster\.[^.]+_[^.]+\.({'|'.join((*ACTIVE, TOTAL, ANSWERED, FAILED, TIME))})$"
"""Which of the proxy's statistics are asked for: those of pools."""
LEAST_MS = 1000
"""A rate is never taken from less: of what came within a blink nobody knows whether it goes on."""


@dataclass(slots=True)
class Counts:
    """Of one pool: requests under way now, and since the proxy began: sent, answered, failed, and answered within so many ms."""

    active: int = 0
    sent: int = 0
    answered: int = 0
    failed: int = 0
    within: dict[int, int] = field(default_factory=dict)


def read_statistics(told: Manifest) -> dict[Pool, Counts]:
    """The counts by pool, over HTTP/1.1 and gRPC together."""
    found: dict[Pool, Counts] = {}
    for one in told.get("stats") or ():
        if "histograms" in one:
            for histogram in one["histograms"] or ():
                _add_histogram(found, histogram)
            continue
        pool, statistic = _place(str(one["name"]))
        if pool is None:
            continue
        counts, value = found.setdefault(pool, Counts()), int(one["value"])
        if statistic in ACTIVE:
            counts.active += value
        elif statistic == TOTAL:
            counts.sent += value
        elif statistic == ANSWERED:
            counts.answered += value
        else:
            counts.failed += value
    return found


def _add_histogram(found: dict[Pool, Counts], histogram: Manifest) -> None:
    pool, _ = _place(str(histogram["name"]))
    if pool is None:
        return
    within = found.setdefault(pool, Counts()).within
    for bucket in histogram.get("buckets") or ():
        bound = int(float(bucket["upper_bound"]))
        within[bound] = within.get(bound, 0) + int(bucket["cumulative"])


def _place(name: str) -> tuple[Pool | None, str]:
    """``cluster.team_iris-predictor-00001.upstream_rq_total`` → the pool and the statistic."""
    words = name.split(".")
    return (pool_of_cluster(words[1]), words[2]) if len(words) == 3 else (None, "")


@dataclass(slots=True)
class _Borne:
    """Since the last reading: requests under way (thousandths) times milliseconds, and requests that came."""

    weighted: int = 0
    came: int = 0


@dataclass(slots=True)
class Meter:
    """Adds up what is looked at often, and gives averages over the time between two readings. Times are milliseconds."""

    since: int
    looked: int = 0
    _sent: dict[Pool, int] = field(default_factory=dict)
    _held: dict[Key, int] = field(default_factory=dict)
    _borne: dict[Key, _Borne] = field(default_factory=dict)

    def look(self, now: int, found: Mapping[Key, tuple[Mapping[Pool, Counts], int]]) -> None:
        """What there is of each service at ``now``: the counts of its pools, and how many of its requests wait.

        One that waits came as well; it is not counted once more when it is sent.
        """
        time = now - max(self.looked, self.since)
        for key, (pools, held) in found.items():
            borne = self._borne.setdefault(key, _Borne())
            borne.weighted += (sum(counts.active for counts in pools.values()) + held) * 1000 * time
            came = sum(self._newly_sent(pool, counts.sent) for pool, counts in pools.items())
            borne.came += came + held - self._held.pop(key, 0)
            if held:
                self._held[key] = held
        self.looked = now

    def read(self, now: int) -> dict[Key, tuple[int, int]]:
        """Requests under way on average, and requests a second, both in thousandths; then it begins anew."""
        time = max(1, now - self.since)
        found = {
            key: (borne.weighted // time, max(0, borne.came) * 1_000_000 // max(time, LEAST_MS))
            for key, borne in self._borne.items()
        }
        self._borne, self.since = {}, now
        return found

    def _newly_sent(self, pool: Pool, total: int) -> int:
        """Nothing is known of the time before the first look of all; a count that began anew began with zero."""
        before = self._sent.get(pool, 0 if self.looked else total)
        self._sent[pool] = total
        return total - before if total >= before else total
