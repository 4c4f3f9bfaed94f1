"""Pod sets that ask for a place in a topology: what they need, read from pods or from the templates of their job."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kube import Manifest
from kube.lent_resources import current
from kube.pod_sets import NO_WISH, PODSET, PodSetAsk, ask_of
from kube.pods import pod_request
from resources import QuantityError


class PodSet(NamedTuple):
    """So many pods of one kind; ``limits`` is what their spec says of nodes, as canonical JSON."""

    ask: PodSetAsk
    pods: int
    requests: tuple[tuple[str, int], ...]
    limits: str = ""
    role: str = ""
    """Which part of its job it is: parts that are alike are laid out each by itself."""


def asks_for_place(annotations: Mapping[str, str]) -> bool:
    """Whether there may be anything that asks for a place."""
    return PODSET in "\n".join(annotations)


def podset_of(annotations: Mapping[str, str], spec: Manifest, count: int, role: str = "") -> PodSet | None:
    """The set of ``count`` pods of ``spec``; None where they ask for no place in a topology."""
    ask = ask_of(annotations)
    if count <= 0 or (ask == NO_WISH and annotations.get(PODSET + "unconstrained-topology") != "true"):
        return None
    try:
        requests = current(pod_request(spec))
    except QuantityError:
        return None
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    parts = [spec.get("nodeSelector"), spec.get("tolerations"), required]
    limits = json.dumps(parts, separators=(",", ":"), sort_keys=True) if any(parts) else ""
    return PodSet(
        ask, count, tuple(sorted((name, amount) for name, amount in requests.items() if amount)), limits, role
    )


def merged(found: Iterable[PodSet | None]) -> tuple[PodSet, ...]:
    """The sets, those that are alike in all but their number as one."""
    counts: dict[PodSet, int] = {}
    for podset in found:
        if podset is not None:
            alike = podset._replace(pods=0)
            counts[alike] = counts.get(alike, 0) + podset.pods
    return tuple(podset._replace(pods=count) for podset, count in sorted(counts.items()))


def podsets_of_job(part: Any, count: int = 1, path: str = "") -> Iterator[PodSet | None]:
    """The sets of all pod templates in a job's spec, whatever kind of job it is, each as often as its holders say.

    ``path`` is where ``part`` stands in the spec, and tells sets apart.
    """
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from podsets_of_job(item, count, f"{path}[{index}]")
    if not isinstance(part, dict):
        return
    template = part.get("template")
    inner = template if isinstance(template, dict) else {}
    spec = inner.get("spec")
    own = count * _copies(part) if inner else count
    if isinstance(spec, dict) and "containers" in spec:
        yield podset_of((inner.get("metadata") or {}).get("annotations") or {}, spec, own, path)
        return
    for name, item in part.items():
        yield from podsets_of_job(item, own, f"{path}.{name}")


def _copies(holder: Mapping[str, Any]) -> int:
    """How many copies of its template a part of a job asks for: replicas, or parallelism as far as completions go."""
    number = holder.get("replicas", holder.get("parallelism", 1))
    if not isinstance(number, int):
        return 1
    most = holder.get("completions")
    return min(number, most) if isinstance(most, int) and "replicas" not in holder else number
