"""What nodes and pods ask for, have and use, as ``tidegate top`` shows it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kube import Manifest
from kube.pods import sound_pod_request
from resources import Amounts, QuantityError, add, format_amounts, parse_amounts
from tidegate_cli.cells import dig
from tidegate_cli.tables import grid

_ALWAYS = ("cpu", "memory")
_UNSHOWN = ("pods", "ephemeral-storage")
_BYTES = ("memory", "storage", "ephemeral-storage", "batch-memory", "mid-memory")
_SIZES = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def node_lines(nodes: Sequence[Manifest], pods: Iterable[Manifest], metrics: Iterable[Manifest]) -> list[str]:
    """A table of nodes: for each resource what pods ask for of what may be given away, and what is used where it is known."""
    living = [pod for pod in pods if not _is_finished(pod)]
    used = node_usage(metrics)
    asked = {str(node["metadata"]["name"]): _on(node, living) for node in nodes}
    have = {str(node["metadata"]["name"]): amounts(dig(node, "status.allocatable")) for node in nodes}
    counts = {name: sum(dig(pod, "spec.nodeName") == name for pod in living) for name in asked}
    resources = _resources([*have.values(), *asked.values()])
    titles = ["NAME", "PODS", *(name.upper() if name in _ALWAYS else name for name in resources), *_used_titles(used)]
    rows = [
        [
            name,
            _share("pods", counts[name], have[name].get("pods", 0)),
            *(_share(one, asked[name].get(one, 0), have[name].get(one, 0)) for one in resources),
            *_used_cells(used, used.get(name)),
        ]
        for name in sorted(asked)
    ]
    return grid(titles, rows)


def pod_lines(pods: Sequence[Manifest], metrics: Iterable[Manifest], *, namespaces: bool) -> list[str]:
    """A table of pods that have not ended: what each asks for, and uses where it is known."""
    living = [pod for pod in pods if not _is_finished(pod)]
    used = pod_usage(metrics)
    asked = [sound_pod_request(pod.get("spec") or {}) for pod in living]
    resources = _resources(asked)
    place = ["NAMESPACE"] if namespaces else []
    titles = [*place, "NAME", "NODE", *(name.upper() if name in _ALWAYS else name for name in resources)]
    rows = []
    for pod, need in zip(living, asked, strict=True):
        metadata = pod["metadata"]
        name, namespace = str(metadata["name"]), str(metadata.get("namespace", ""))
        cells = [name, dig(pod, "spec.nodeName") or "<none>", *(amount(one, need.get(one, 0)) for one in resources)]
        where = [namespace] if namespaces else []
        rows.append([*where, *cells, *_used_cells(used, used.get((namespace, name)))])
    return grid([*titles, *_used_titles(used)], rows)


def node_usage(metrics: Iterable[Manifest]) -> dict[str, Amounts]:
    """What each node uses, from NodeMetric objects."""
    found = {
        str(metric["metadata"]["name"]): amounts(dig(metric, "status.nodeMetric.nodeUsage.resources"))
        for metric in metrics
    }
    return {name: used for name, used in found.items() if used}


def pod_usage(metrics: Iterable[Manifest]) -> dict[tuple[str, str], Amounts]:
    """What each pod, by namespace and name, uses, from NodeMetric objects."""
    return {
        (str(one.get("namespace", "")), str(one.get("name", ""))): amounts(dig(one, "podUsage.resources"))
        for metric in metrics
        for one in dig(metric, "status.podsMetric") or ()
    }


def amounts(listed: Any) -> Amounts:
    """A resource list as amounts; one that is none counts as nothing here."""
    try:
        return parse_amounts(listed) if isinstance(listed, dict) else {}
    except QuantityError:
        return {}


def amount(resource: str, value: int) -> str:
    """An amount in few digits: ``1500m``, ``3.5Gi``, ``8``."""
    if not resource.rsplit("/", 1)[-1].endswith(_BYTES):
        return format_amounts({resource: value})[resource]
    for suffix, size in _SIZES:
        if value >= size:
            tenths = (value * 10 + size // 2) // size
            return f"{tenths // 10}{suffix}" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}{suffix}"
    return str(value)


def _share(resource: str, asked: int, have: int) -> str:
    if not asked and not have:
        return "-"
    percent = f" ({asked * 100 // have}%)" if have else ""
    return f"{amount(resource, asked)}/{amount(resource, have)}{percent}"


def _used_titles(used: Mapping[Any, Amounts]) -> list[str]:
    return ["CPU USED", "MEMORY USED"] if used else []


def _used_cells(used: Mapping[Any, Amounts], own: Amounts | None) -> list[str]:
    if not used:
        return []
    return [amount(name, own[name]) if own and name in own else "<unknown>" for name in _ALWAYS]


def _on(node: Manifest, pods: Iterable[Manifest]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        if dig(pod, "spec.nodeName") == node["metadata"]["name"]:
            total = add(total, sound_pod_request(pod.get("spec") or {}))
    return total


def _resources(listed: Iterable[Amounts]) -> list[str]:
    """The resources worth a column: cpu and memory, and whatever else there is of."""
    named = {name for one in listed for name, value in one.items() if value and name not in (*_ALWAYS, *_UNSHOWN)}
    return [*_ALWAYS, *sorted(named)]


def _is_finished(pod: Manifest) -> bool:
    return dig(pod, "status.phase") in ("Succeeded", "Failed")
