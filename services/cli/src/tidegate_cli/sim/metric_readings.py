"""Samples of a scenario as the objects that a program hands them in by."""

import json
from hashlib import sha256

from kube import Manifest
from kube.kinds import api_version_of
from kube.times import rfc3339_milli
from testing.scenarios.target import MetricSample

NAMESPACE = "default"
"""Where samples of things outside the cluster are handed in."""


def reading(sample: MetricSample, now: int) -> Manifest:
    """The MetricReading of a sample that is taken at ``now``; the next sample of the same series replaces it."""
    subject = sample.subject
    series = json.dumps([sample.source, subject, sample.name, sample.labels], sort_keys=True)
    spec: Manifest = {
        "metric": {"name": sample.name, "labels": sample.labels},
        "timestamp": rfc3339_milli(now),
    }
    if subject is not None:
        kind = subject.kind
        spec["describedObject"] = {
            "apiVersion": api_version_of(kind),
            "kind": kind.partition(".")[0],
            "name": subject.name,
        }
    if sample.value_nano is not None:
        spec["value"] = f"{sample.value_nano}n"
    name = f"{sample.source}-{sha256(series.encode()).hexdigest()[:16]}"
    namespace = NAMESPACE if subject is None else subject.namespace or NAMESPACE
    return {
        "apiVersion": "tidegate.dev/v1",
        "kind": "MetricReading",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
