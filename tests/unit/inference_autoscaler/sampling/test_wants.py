"""Which samples are asked for, and where, learned from the objects alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.domain.sampling.rules import RuleError, read_rules
from inference_autoscaler.domain.sampling.source import Access, Exposition, JetStreamLag, JsonValue, Promql
from inference_autoscaler.domain.sampling.want import Want
from inference_autoscaler.domain.sampling.wants import Wants
from kube import Key, Manifest, Store, from_manifest

TARGET = Key("Deployment.apps", "default", "web")
OVERRIDES = {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}}


def scaled(*triggers: Manifest, **spec: Any) -> Manifest:
    wanted = {"scaleTargetRef": {"name": "web"}, "triggers": list(triggers), **spec}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"}, "spec": wanted}


def autoscaler(*metrics: Manifest, name: str = "web") -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": reference, "maxReplicas": 9, "metrics": list(metrics)}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec}


def pods_metric(name: str, **labels: str) -> Manifest:
    metric: Manifest = {"name": name, **({"selector": {"matchLabels": labels}} if labels else {})}
    return {"type": "Pods", "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}}}


def external_metric(name: str, **labels: str) -> Manifest:
    return {"type": "External", "external": pods_metric(name, **labels)["pods"]}


def wanted(*manifests: Manifest, plan: SamplingPlan | None = None) -> list[Want]:
    wants, store = Wants(plan or SamplingPlan()), Store()
    for manifest in manifests:
        store.put(from_manifest(manifest))
    wants.update(store)
    return sorted(wants.all.values(), key=lambda want: want.metric)


def prometheus(**metadata: str) -> Manifest:
    told = {"serverAddress": "http://prometheus:9090/", "query": "sum(q)", "threshold": "5", **metadata}
    return {"type": "prometheus", "metadata": told}


def test_a_prometheus_trigger_is_asked_at_its_server() -> None:
    (want,) = wanted(scaled(prometheus()))
    assert want.source == Promql("http://prometheus:9090", "sum(q)")
    assert (want.metric, want.labels) == ("s0-prometheus", (("scaledobject.keda.sh/name", "web"),))


def test_an_autoscaler_reads_every_fifteen_seconds_unless_its_trigger_is_cached() -> None:
    """KEDA asks its source at each read of the autoscaler, whatever the polling interval."""
    cached = {**prometheus(), "useCachedMetrics": True}
    (often,), (seldom,) = wanted(scaled(prometheus())), wanted(scaled(cached))
    (short,) = wanted(scaled(prometheus(), pollingInterval=5))
    assert (often.every_ms, seldom.every_ms, short.every_ms) == (15_000, 30_000, 5_000)


def test_an_empty_answer_is_zero_only_where_the_trigger_says_so() -> None:
    (silent,), (zero,) = wanted(scaled(prometheus())), wanted(scaled(prometheus(ignoreNullValues="true")))
    assert isinstance(silent.source, Promql) and not silent.source.empty_is_zero
    assert isinstance(zero.source, Promql) and zero.source.empty_is_zero


def test_a_trigger_without_a_server_is_left_to_who_hands_samples_in() -> None:
    assert wanted(scaled(prometheus(serverAddress=""))) == []


def test_triggers_without_a_source_outside_are_not_asked() -> None:
    assert wanted(scaled({"type": "cron", "metadata": {}}, {"type": "cpu", "metadata": {"value": "50"}})) == []


def test_triggers_are_left_alone_where_somebody_else_acts_on_scaled_objects() -> None:
    assert wanted(scaled(prometheus()), plan=SamplingPlan.of({}, triggers=False)) == []


def test_what_lets_us_in_is_named_and_not_told() -> None:
    given = {**prometheus(authModes="bearer, tls", unsafeSsl="true"), "authenticationRef": {"name": "creds"}}
    (want,) = wanted(scaled(given))
    assert isinstance(want.source, Promql)
    key = Key("TriggerAuthentication.keda.sh", "default", "creds")
    assert want.source.access == Access(key, ("bearer", "tls"), unverified=True)


def test_a_stream_and_a_json_document_are_asked_at_their_addresses() -> None:
    lag = {"natsServerMonitoringEndpoint": "nats:8222", "account": "A", "stream": "S", "consumer": "C"}
    value = {"url": "http://api/x", "valueLocation": "a.b", "targetValue": "3"}
    found = wanted(scaled({"type": "nats-jetstream", "metadata": lag}, {"type": "metrics-api", "metadata": value}))
    assert [want.source for want in found] == [
        JetStreamLag("http://nats:8222", "A", "S", "C"),
        JsonValue("http://api/x", "a.b"),
    ]


def test_a_metric_of_pods_that_no_rule_tells_is_asked_of_the_pods() -> None:
    (want,) = wanted(autoscaler(pods_metric("nv_inference_pending_request_count", model="resnet")))
    assert want.source == Exposition(TARGET, "nv_inference_pending_request_count", (("model", "resnet"),))
    assert want.target == TARGET


def test_nothing_is_asked_of_pods_where_that_is_switched_off() -> None:
    assert wanted(autoscaler(pods_metric("queue")), plan=SamplingPlan.of({"scrape": False})) == []


def test_a_rule_of_the_adapter_is_read_the_other_way_round() -> None:
    rule = {
        "seriesQuery": 'http_requests_total{namespace!="",pod!=""}',
        "resources": OVERRIDES,
        "name": {"matches": "^(.*)_total", "as": "${1}_per_second"},
        "metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)",
    }
    plan = SamplingPlan.of({"prometheus": "http://p:9090", "rules": [rule]})
    (want,) = wanted(autoscaler(pods_metric("http_requests_per_second", code="200")), plan=plan)
    query = 'sum(rate(http_requests_total{namespace="default",code="200"}[2m])) by (pod)'
    assert want.source == Promql("http://p:9090", query, by="pod")


def test_the_load_of_gpus_is_told_by_the_exporter_where_there_is_a_prometheus() -> None:
    (want,) = wanted(autoscaler(pods_metric("duty_cycle_current")), plan=SamplingPlan.of({"prometheus": "http://p"}))
    assert isinstance(want.source, Promql)
    assert want.source.query == 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="default"}) by (pod)'


def test_an_object_is_asked_for_by_its_name() -> None:
    rule = {"seriesQuery": "hits", "resources": {"template": "<<.Resource>>"}}
    described = {"apiVersion": "v1", "kind": "Service", "name": "shop"}
    metric = {**pods_metric("hits")["pods"], "describedObject": described}
    (want,) = wanted(
        autoscaler({"type": "Object", "object": metric}),
        plan=SamplingPlan.of({"prometheus": "http://p", "rules": [rule]}),
    )
    assert want.source == Promql("http://p", 'sum(hits{namespace="default",service="shop"}) by (service)')
    assert want.subject == Key("Service", "default", "shop")


def test_what_is_outside_is_one_number_and_of_no_namespace_where_the_rule_says_so() -> None:
    rule = {"seriesQuery": "queue_length", "resources": {"namespaced": False}}
    plan = SamplingPlan.of({"prometheus": "http://p", "externalRules": [rule]})
    (want,) = wanted(autoscaler(external_metric("queue_length", queue="orders")), plan=plan)
    assert want.source == Promql("http://p", 'sum(queue_length{queue="orders"})', summed=True)


def test_what_two_want_is_wanted_once() -> None:
    (want,) = wanted(
        autoscaler(external_metric("q"), name="a"), autoscaler(external_metric("q"), name="b"), plan=_plan("q")
    )
    assert want.metric == "q"


def test_nobody_wants_what_the_autoscaler_of_a_scaled_object_reads_by_itself() -> None:
    """Its metrics are those of the triggers, which are asked for already."""
    metric = external_metric("s0-prometheus", **{"scaledobject.keda.sh/name": "web"})
    assert wanted(autoscaler(metric), plan=_plan('{__name__=~".*"}')) == []


def test_objects_that_make_no_sense_want_nothing_and_disturb_nobody() -> None:
    broken = scaled({"type": "prometheus"})
    broken["spec"]["scaleTargetRef"] = {}
    assert [want.metric for want in wanted(broken, autoscaler(pods_metric("q")))] == ["q"]


def test_who_is_gone_wants_nothing_any_more() -> None:
    wants, store = Wants(SamplingPlan()), Store()
    item = from_manifest(autoscaler(pods_metric("q")))
    store.put(item)
    assert wants.update(store) and wants.all
    assert not wants.update(store)
    store.remove(item.key)
    assert wants.update(store) and not wants.all


def test_values_are_written_into_queries_as_values() -> None:
    (want,) = wanted(autoscaler(external_metric("q", a='x"} or vector(9) #')), plan=_plan("q"))
    assert isinstance(want.source, Promql)
    assert want.source.query == 'sum(q{namespace="default",a="x\\"} or vector(9) #"})'


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({}, "seriesQuery"),
        ({"seriesQuery": '{job="a"}'}, "names no series"),
        ({"seriesQuery": "a", "name": {"matches": "a(.*)b(.*)", "as": "${1}"}}, "cannot be turned round"),
        ({"seriesQuery": '{__name__=~"a.*"}', "name": {"as": "one"}}, "seriesQuery has to name one"),
        ({"seriesQuery": "a", "metricsQuery": "<<.LabelValuesByName>>"}, "LabelValuesByName"),
        ({"seriesQuery": '{__name__=~"a(.*"}'}, "rules"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_its_place(rule: Manifest, words: str) -> None:
    with pytest.raises(RuleError, match=words) as refused:
        read_rules([rule])
    assert "rules[0]" in str(refused.value)


def test_rules_without_a_prometheus_are_refused() -> None:
    with pytest.raises(RuleError, match="prometheus"):
        SamplingPlan.of({"rules": [{"seriesQuery": "a"}]})
    with pytest.raises(RuleError, match="rulez"):
        SamplingPlan.of({"rulez": []})


def _plan(series: str) -> SamplingPlan:
    return SamplingPlan.of({"prometheus": "http://p", "externalRules": [{"seriesQuery": series}]})


_NAMES = st.sampled_from(["a", "b", "c"])
_QUERIES = st.sampled_from(["q", "r"])


@given(
    st.lists(
        st.tuples(_NAMES, st.none() | st.lists(st.tuples(_QUERIES, st.sampled_from([5, 60])), max_size=2)), max_size=12
    )
)
def test_what_is_kept_up_is_what_a_first_look_would_find(
    changes: list[tuple[str, list[tuple[str, int]] | None]],
) -> None:
    """Whatever becomes of the objects, and however often it is looked meanwhile."""
    kept, store = Wants(SamplingPlan()), Store()
    for name, triggers in changes:
        if triggers is None:
            store.remove(Key("ScaledObject.keda.sh", "default", name))
        else:
            every = min((seconds for _, seconds in triggers), default=5)
            item = scaled(*(prometheus(query=query) for query, _ in triggers), pollingInterval=every)
            store.put(from_manifest({**item, "metadata": {"name": name}}))
        before = {place: dict(one.wants) for place, one in kept.asked.items()}
        changed = kept.update(store)
        fresh = Wants(SamplingPlan())
        fresh.update(store)
        assert kept.all == fresh.all
        assert {place: one.wants for place, one in kept.asked.items()} == {
            place: one.wants for place, one in fresh.asked.items()
        }
        after = {place: one.wants for place, one in kept.asked.items()}
        assert {place for place in before.keys() | after.keys() if before.get(place) != after.get(place)} <= changed
