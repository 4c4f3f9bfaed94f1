"""A sample that is wanted: of what it is, where it is asked for, and how often."""

import hashlib
import json
from dataclasses import dataclass

from inference_autoscaler.domain.metrics.reading import POD, READING
from inference_autoscaler.domain.sampling.source import Source
from kube import Key, Manifest
from kube.kinds import api_version_of
from kube.times import rfc3339_milli
from resources import format_quantity

WANT_LABEL = "tidegate.dev/want"
"""On each sample that is asked for here: whose it is, so that it goes when nobody wants it any more."""


@dataclass(frozen=True, slots=True)
class Want:
    """One sample, or one for each pod of ``target``. ``subject`` is the object that it is of, None for what is outside.

    ``labels`` are those that it carries: autoscalers select by them.
    """

    namespace: str
    metric: str
    source: Source
    every_ms: int
    labels: tuple[tuple[str, str], ...] = ()
    subject: Key | None = None
    target: Key | None = None

    @property
    def id(self) -> str:
        """The same as long as it is of the same and is asked for at the same place."""
        content = (self.namespace, self.metric, repr(self.source), self.labels, self.subject, self.target)
        return _digest(content)

    def key(self, pod: str = "") -> Key:
        """The key of the MetricReading that says it, of ``pod`` where it is of pods."""
        content = (self.namespace, self.metric, self.labels, self.subject, pod)
        return Key(READING, self.namespace, f"sampled-{_digest(content)}")

    def reading(self, value_milli: int | None, why: str, now: int, pod: str = "") -> Manifest:
        """The MetricReading; without a value it says why there is none."""
        spec: Manifest = {
            "metric": {"name": self.metric, "labels": dict(self.labels)},
            "timestamp": rfc3339_milli(now),
        }
        described = Key(POD, self.namespace, pod) if pod else self.subject
        if described is not None:
            kind = described.kind.partition(".")[0]
            spec["describedObject"] = {
                "apiVersion": api_version_of(described.kind) if described.kind != POD else "v1",
                "kind": kind,
                "name": described.name,
            }
        if value_milli is None:
            spec["message"] = why
        else:
            spec["value"] = format_quantity(value_milli, milli=True)
        key = self.key(pod)
        metadata = {"name": key.name, "namespace": key.namespace, "labels": {WANT_LABEL: self.id}}
        return {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": metadata, "spec": spec}


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:20]
