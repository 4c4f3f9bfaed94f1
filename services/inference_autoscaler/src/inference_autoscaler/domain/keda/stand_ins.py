"""What a cluster's own autoscaler cannot ask anybody for, told to it as samples: schedules, and what stands in for a silent source.

Between one and the maximum the HorizontalPodAutoscaler that a ScaledObject makes owns the count, whoever decides on it; from none to one,
and back, the ScaledObject does. Where a controller of the cluster decides on the former, it asks external.metrics.k8s.io, which knows
samples only. No stand-in is ever taken for a sample here.
"""

from inference_autoscaler.domain.horizontal.proposal import NoProposal, Size
from inference_autoscaler.domain.horizontal.spec import EXTERNAL, Metric
from inference_autoscaler.domain.horizontal.spec import read as read_autoscaler
from inference_autoscaler.domain.keda.scaled_object import NAME_LABEL
from inference_autoscaler.domain.keda.sources import Sources
from inference_autoscaler.domain.metrics.reading import READING, STAND_IN_LABEL
from kube import Key, Manifest, Mutation, Object, Store, Verb, rfc3339
from kube.kinds import api_version_of
from kube.owners import owner_reference
from resources import format_quantity


def stand_ins(
    item: Object, made: Object | None, sources: Sources, size: Size, store: Store, now: int
) -> tuple[Mutation, ...]:
    """What has to happen to those of the ScaledObject ``item``, whose autoscaler ``made`` is, and whose target is of ``size``."""
    there = {one.name: one for one in store.owned_by(item.uid) if one.kind == READING and STAND_IN_LABEL in one.labels}
    metrics = read_autoscaler(made).metrics if made is not None else ()
    wanted: dict[str, tuple[str, str]] = {}
    for metric in metrics:
        value = _value(item, metric, sources, size, now) if metric.type == EXTERNAL else None
        if value is not None:
            wanted[f"{item.name}.{metric.name}.stand-in"] = (metric.name, format_quantity(value, milli=True))
    changes = [Mutation(Verb.DELETE, one.key, one.uid) for name, one in sorted(there.items()) if name not in wanted]
    for name, (metric_name, amount) in sorted(wanted.items()):
        if name not in there:
            manifest = _reading(item, name, metric_name, amount, now)
            changes.append(Mutation(Verb.CREATE, Key(READING, item.namespace, name), manifest=manifest))
        elif there[name].spec.get("value") != amount:
            patch = {"spec": {"value": amount, "timestamp": rfc3339(now)}}
            changes.append(Mutation(Verb.PATCH, there[name].key, there[name].uid, patch=patch))
    return tuple(changes)


def _value(item: Object, metric: Metric, sources: Sources, size: Size, now: int) -> int | None:
    """In thousandths; None where a sample says it, or nothing is known and there is nothing to fall back on."""
    if not sources.is_told(item.namespace, metric, now):
        return None
    try:
        return sources.present_value(item.namespace, metric, size, now)
    except NoProposal:
        return None


def _reading(item: Object, name: str, metric: str, amount: str, now: int) -> Manifest:
    metadata = {
        "name": name,
        "namespace": item.namespace,
        "labels": {STAND_IN_LABEL: "true"},
        "ownerReferences": [owner_reference(item)],
    }
    spec = {
        "metric": {"name": metric, "labels": {NAME_LABEL: item.name}},
        "value": amount,
        "timestamp": rfc3339(now),
    }
    return {"apiVersion": api_version_of(READING), "kind": "MetricReading", "metadata": metadata, "spec": spec}
