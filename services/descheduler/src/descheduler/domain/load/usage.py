"""What a node really uses, by its newest report: the system, pods that are there, and pods that come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from descheduler.domain.cluster.pod_traits import began_at, is_prod, requests_of
from kube import Key, Manifest, Object, parse_time
from kube.json_text import read_json
from kube.lent_resources import current
from resources import Amounts, QuantityError, add, parse_amounts

METRIC = "NodeMetric.slo.koordinator.sh"
RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"
_LENT = {
    "cpu": ("kubernetes.io/batch-cpu", "kubernetes.io/mid-cpu"),
    "memory": ("kubernetes.io/batch-memory", "kubernetes.io/mid-memory"),
}
_THOUGHT_PERCENT = {"cpu": 85, "memory": 70}
_UNSTATED = {"cpu": 250, "memory": 200 << 20}


@dataclass(frozen=True, slots=True)
class Report:
    """A NodeMetric. ``at`` is in ms since the epoch; ``pods`` are those that it tells of."""

    at: int
    system: Amounts
    pods: Mapping[Key, Amounts]


@dataclass(slots=True)
class NodeUsage:
    """``capacity`` is what the node has before it is amplified. ``used`` counts everything, ``prod`` the pods of that band.

    With ``parts_prod`` False nobody asks for the latter, and it stays empty.
    """

    node: Object
    capacity: Amounts
    used: Amounts
    prod: Amounts
    pods: dict[Key, Amounts] = field(default_factory=dict)
    parts_prod: bool = True

    @property
    def name(self) -> str:
        return self.node.name

    def of(self, pod: Object) -> Amounts:
        """What a pod uses here, or will."""
        return self.pods.get(pod.key, {})

    def put(self, pod: Object, amounts: Amounts) -> None:
        """The pod comes, and uses so much."""
        self.pods[pod.key] = amounts
        self.used = add(self.used, amounts)
        if self.parts_prod and is_prod(pod):
            self.prod = add(self.prod, amounts)

    def take(self, pod: Object) -> Amounts:
        """The pod leaves; what it used."""
        gone = self.pods.pop(pod.key, {})
        self.used = _less(self.used, gone)
        if self.parts_prod and is_prod(pod):
            self.prod = _less(self.prod, gone)
        return gone


def read_report(item: Object | None) -> Report | None:
    """What a NodeMetric says; None where it has no time or amounts that can be read."""
    if item is None:
        return None
    status = item.status
    try:
        measured = status.get("nodeMetric") or {}
        pods = {
            Key("Pod", str(one.get("namespace") or "default"), str(one["name"])): _resources(one.get("podUsage"))
            for one in status.get("podsMetric") or ()
        }
        return Report(parse_time(str(status["updateTime"])), _resources(measured.get("systemUsage")), pods)
    except (AttributeError, KeyError, TypeError, ValueError, QuantityError):
        return None


def usage_of(
    node: Object,
    report: Report,
    pods: Iterable[Object],
    *,
    parts_prod: bool = True,
    inherited: Mapping[str, Amounts] | None = None,
) -> NodeUsage:
    """The node with the ``pods`` that are on it: what the report says of others, that are gone, does not count.

    A pod that came after the report counts with what it is thought to use, and one that was moved with what it used before:
    ``inherited``, by uid. One that was there and is not told of counts with nothing.
    """
    found = NodeUsage(node, _capacity(node), dict(report.system), {}, parts_prod=parts_prod)
    for pod in pods:
        told = report.pods.get(pod.key)
        if told is None:
            thought = (inherited or {}).get(pod.uid) or estimate(pod)
            told = thought if began_at(pod) >= report.at else {}
        found.put(pod, told)
    return found


def estimate(pod: Object) -> Amounts:
    """What a pod is thought to use: a share of what it asks for, of lent resources too, or a little where it says nothing."""
    asked = requests_of(pod)
    found: Amounts = {}
    for name, percent in _THOUGHT_PERCENT.items():
        amount = asked.get(name, 0) + sum(asked.get(lent, 0) for lent in _LENT[name])
        found[name] = amount * percent // 100 if amount else _UNSTATED[name]
    return found


def _capacity(node: Object) -> Amounts:
    given: Any = node.status.get("allocatable")
    raw = node.annotations.get(RAW_ALLOCATABLE)
    try:
        written = read_json(raw) if raw else {}
        return parse_amounts({**(given or {}), **(written if isinstance(written, dict) else {})})
    except (ValueError, TypeError):
        return {}


def _resources(usage: Manifest | None) -> Amounts:
    return current(parse_amounts((usage or {}).get("resources")))


def _less(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(0, amount - right.get(name, 0)) for name, amount in left.items()}
