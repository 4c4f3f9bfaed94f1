"""Reading ``usage`` and ``metrics`` steps: what the nodes and the request path measured."""

from typing import Any

from kube import Key, Manifest
from resources import Amounts, QuantityError, add, parse_amounts
from testing.scenarios.errors import ScenarioError
from testing.scenarios.fields import at, every, mapping, word
from testing.scenarios.refs import parse_pod_name, parse_ref
from testing.scenarios.target import MetricSample, NodeUsage
from testing.scenarios.values import nano

_MEASURED = ("cpu", "memory")
_SERVICE_METRICS = ("concurrency", "rps")
_SAMPLE_KEYS = frozenset(
    {"pod", "object", "external", "service", "trial", "cpu", "memory", "name", "value", "labels", "concurrency", "rps"}
)
_SUBJECTS = ("pod", "object", "external", "service", "trial")


def parse_usage(value: Any) -> NodeUsage:
    """One node's sample. What is left out of the whole is the sum of the parts; a system left out uses what the pods do not."""
    entry = mapping(value, (*_MEASURED, "system", "pods"))
    system = at("system", _amounts, entry.get("system"))
    pods = dict(every("pods", entry.get("pods"), lambda name, used: (parse_pod_name(name), _amounts(used))))
    total = system
    for used in pods.values():
        total = add(total, used)
    whole = _amounts({name: entry[name] for name in _MEASURED if name in entry})
    rest = {name: max(amount - total.get(name, 0), 0) for name, amount in whole.items()}
    return NodeUsage({**total, **whole}, {**rest, **system}, pods)


def _amounts(value: Any) -> Amounts:
    try:
        return parse_amounts(mapping(value, _MEASURED))
    except QuantityError as error:
        raise ScenarioError(str(error)) from None


def parse_metric(value: Any) -> list[MetricSample]:
    """The samples in one element of ``metrics``: a pod's or a service's may hold several."""
    entry = mapping(value, _SAMPLE_KEYS)
    sources = [name for name in _SUBJECTS if name in entry]
    if len(sources) != 1:
        raise ScenarioError(f"it is about one of {', '.join(_SUBJECTS)}")
    source = sources[0]
    subject = at(source, _subject, source, entry[source])
    labels = {str(name): str(one) for name, one in mapping(entry.get("labels")).items()}
    metrics = _metrics(source, entry)
    if not metrics:
        raise ScenarioError("it has no value")
    return [MetricSample(source, name, at(name, _nano, one), subject, labels) for name, one in metrics.items()]


def _subject(source: str, value: Any) -> Key | None:
    if source == "external":
        return None
    if source == "object":
        return parse_ref(value).candidates()[0]
    kind = {"pod": "Pod", "service": "InferenceService.serving.kserve.io", "trial": "Trial.kubeflow.org"}[source]
    return Key(kind, *parse_pod_name(value))


def _metrics(source: str, entry: Manifest) -> Manifest:
    if source == "external":
        return {at("external", word, entry["external"]): entry["value"]} if "value" in entry else {}
    if source == "service":
        return {name: entry[name] for name in _SERVICE_METRICS if name in entry}
    metrics = {name: entry[name] for name in _MEASURED if name in entry}
    if "value" in entry:
        metrics[at("name", word, entry.get("name"))] = entry["value"]
    return metrics


def _nano(value: Any) -> int | None:
    amount = nano(value)
    if amount is None and value is not None:
        raise ScenarioError(f"{value!r} is no number or quantity")
    return amount
