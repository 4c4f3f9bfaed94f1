"""What is said of each service, as MetricReadings: its load for the autoscaler, and what its revisions answered for rollouts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from inference_gateway.domain.envoy.bootstrap import BOUNDS_MS
from inference_gateway.domain.load import Counts
from inference_gateway.domain.serving.replica import Pool
from inference_gateway.domain.serving.service import Service
from kube import Key, Manifest
from kube.kinds import api_version_of
from kube.times import rfc3339_milli

READING = "MetricReading.tidegate.dev"
CONCURRENCY, RPS = "concurrency", "rps"
REQUESTS, ERRORS, LATENCY = "revision_requests_total", "revision_errors_total", "revision_latency_bucket"
SOURCE_LABEL = "tidegate.dev/source"
"""On each sample: the gateway that says it. What several say of one service adds up."""
ONLY = "gateway"
"""The source of a gateway that is alone."""
ALONE = "only"
"""The holder of a service of which there is one."""
AGAIN_MS = 4_000
"""A load that stays as it is is said again after so long: a sample is of the time since the one before, and the shortest window
that looks back at them has 6 s."""


def source_of(holder: str) -> str:
    """What a gateway is called among those that say samples: as its pod, or plainly where it is alone."""
    return ONLY if holder == ALONE else holder


@dataclass(frozen=True, slots=True)
class Sample:
    """``value_milli`` of ``metric`` of a service; ``labels`` tell several of one metric apart."""

    metric: str
    value_milli: int
    labels: tuple[tuple[str, str], ...] = ()

    def key(self, service: Key, source: str = ONLY) -> Key:
        """Of the object by which ``source`` says it. No service has a ``.`` in its name, so none is another's."""
        words = (service.name, self.metric.replace("_", "-"), *(value for _, value in self.labels), source)
        return Key(READING, service.namespace, ".".join(words))


@dataclass(slots=True)
class Said:
    """What was said last, by the object that says it: the value in thousandths, and when."""

    last: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def load_news(self, service: Key, samples: list[Sample], now: int, *, repeat: bool) -> list[Sample]:
        """All of them if one is new, for whoever goes by them takes them together; with ``repeat`` also after a while."""
        is_due = repeat and now - self._time(service) >= AGAIN_MS
        return samples if is_due or self.news(service, samples) else []

    def news(self, service: Key, samples: Iterable[Sample]) -> list[Sample]:
        """Those that nobody knows yet."""
        return [one for one in samples if self.last.get(one.key(service), (None, 0))[0] != one.value_milli]

    def has_been_silent(self, service: Key, since: int) -> bool:
        """Whether nothing was said of its load up to ``since``, so that what comes now would be taken for what was all that time."""
        return self.is_quiet(service) and self._time(service) < since

    def _time(self, service: Key) -> int:
        return self.last.get(Sample(CONCURRENCY, 0).key(service), (0, 0))[1]

    def is_quiet(self, service: Key) -> bool:
        """Whether nobody has been told of any request that is under way."""
        return self.last.get(Sample(CONCURRENCY, 0).key(service), (0, 0))[0] == 0

    def note(self, service: Key, samples: Iterable[Sample], now: int) -> None:
        """They have become facts."""
        self.last.update((sample.key(service), (sample.value_milli, now)) for sample in samples)

    def forget(self, services: Iterable[Key]) -> None:
        """Only ``services`` are left."""
        left = {(key.namespace, key.name) for key in services}
        self.last = {
            key: said for key, said in self.last.items() if (key.namespace, key.name.partition(".")[0]) in left
        }


def load_samples(concurrency_milli: int, rps_milli: int) -> list[Sample]:
    """What a service bore."""
    return [Sample(CONCURRENCY, concurrency_milli), Sample(RPS, rps_milli)]


def answer_samples(service: Service, counts: Mapping[Pool, Counts]) -> list[Sample]:
    """What its revisions answered, while several have a share."""
    found: list[Sample] = []
    for part in service.parts.values():
        if len(part.split) > 1:
            for pool, _ in part.split:
                found += _answers(pool[1], counts.get(pool, Counts()))
    return found


def _answers(revision: str, counts: Counts) -> Iterator[Sample]:
    label = ("revision", revision)
    yield Sample(REQUESTS, counts.answered * 1000, (label,))
    yield Sample(ERRORS, counts.failed * 1000, (label,))
    for bound in BOUNDS_MS:
        yield Sample(LATENCY, counts.within.get(bound, 0) * 1000, (label, ("le", str(bound))))


def reading(service: Service, sample: Sample, now: int, source: str = ONLY) -> Manifest:
    """The MetricReading of the gateway ``source``; it goes when the service goes."""
    key = service.key
    described = {"apiVersion": api_version_of(key.kind), "kind": key.kind.partition(".")[0], "name": key.name}
    owner = {**described, "uid": service.uid}
    named, labels = sample.key(key, source), {SOURCE_LABEL: source}
    return {
        "apiVersion": api_version_of(READING),
        "kind": READING.partition(".")[0],
        "metadata": {"name": named.name, "namespace": named.namespace, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "describedObject": described,
            "metric": {"name": sample.metric, **({"labels": dict(sample.labels)} if sample.labels else {})},
            "value": f"{sample.value_milli}m",
            "timestamp": rfc3339_milli(now),
        },
    }
