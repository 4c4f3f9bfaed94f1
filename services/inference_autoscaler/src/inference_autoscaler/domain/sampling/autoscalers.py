"""Where the metrics of HorizontalPodAutoscalers are to be asked: by the rules of an operator, and of the pods themselves."""

from collections.abc import Iterable

from inference_autoscaler.domain.horizontal.desk import SYNC_MS
from inference_autoscaler.domain.horizontal.spec import EXTERNAL, OBJECT, PODS, Metric, read
from inference_autoscaler.domain.keda.scaled_object import NAME_LABEL
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.domain.sampling.rules import Rule
from inference_autoscaler.domain.sampling.source import Exposition, Promql
from inference_autoscaler.domain.sampling.want import Want
from kube import Key, Object

Labels = tuple[tuple[str, str], ...]


def wants_of_autoscaler(item: Object, plan: SamplingPlan) -> Iterable[Want]:
    """What is to be asked for ``item``. Metrics that nothing here tells are left to who hands them in."""
    spec = read(item)
    for metric in spec.metrics:
        labels = _labels(metric)
        if labels is None or NAME_LABEL in dict(labels):
            continue
        match metric.type:
            case kind if kind == PODS:
                want = _of_pods(metric, item.namespace, spec.target, labels, plan)
            case kind if kind == OBJECT and metric.described is not None:
                want = _of_object(metric, metric.described, item.namespace, labels, plan)
            case kind if kind == EXTERNAL:
                want = _external(metric, item.namespace, labels, plan)
            case _:
                want = None
        if want is not None:
            yield want


def _of_pods(metric: Metric, namespace: str, target: Key, labels: Labels, plan: SamplingPlan) -> Want | None:
    for rule in plan.rules:
        series, label = rule.series_of(metric.name), rule.label_of("pod")
        if series is not None and label:
            query = rule.ask(series, {**_place(rule, namespace), **dict(labels)}, label)
            source = Promql(plan.prometheus, query, by=label)
            return Want(namespace, metric.name, source, SYNC_MS, labels, target=target)
    if not plan.scrapes:
        return None
    return Want(namespace, metric.name, Exposition(target, metric.name, labels), SYNC_MS, labels, target=target)


def _of_object(metric: Metric, described: Key, namespace: str, labels: Labels, plan: SamplingPlan) -> Want | None:
    resource = described.kind.partition(".")[0].lower()
    for rule in plan.rules:
        series, label = rule.series_of(metric.name), rule.label_of(resource)
        if series is not None and label:
            place = {} if resource == "namespace" else _place(rule, namespace)
            query = rule.ask(series, {**place, label: described.name, **dict(labels)}, label)
            source = Promql(plan.prometheus, query)
            return Want(namespace, metric.name, source, SYNC_MS, labels, subject=described)
    return None


def _external(metric: Metric, namespace: str, labels: Labels, plan: SamplingPlan) -> Want | None:
    for rule in plan.external:
        series = rule.series_of(metric.name)
        if series is not None:
            query = rule.ask(series, {**_place(rule, namespace), **dict(labels)}, "")
            return Want(namespace, metric.name, Promql(plan.prometheus, query, summed=True), SYNC_MS, labels)
    return None


def _place(rule: Rule, namespace: str) -> dict[str, str]:
    label = (rule.label_of("namespace") or "namespace") if rule.namespaced else ""
    return {label: namespace} if label else {}


def _labels(metric: Metric) -> Labels | None:
    """Those that the selector names; None where it says more than names, which a sample of ours would not tell."""
    selector = metric.selector or {}
    if selector.get("matchExpressions"):
        return None
    return tuple(sorted((str(name), str(value)) for name, value in (selector.get("matchLabels") or {}).items()))
