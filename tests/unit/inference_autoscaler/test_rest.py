"""Who is at rest is not looked at: what is decided is the same as if everybody were looked at in each round."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference_autoscaler.domain.horizontal.desk import HorizontalDesk
from inference_autoscaler.domain.keda.desk import ScaledObjectDesk
from kube import Key, Manifest, Outcome

AUTOSCALER = "HorizontalPodAutoscaler.autoscaling"
LABELS = {"scaledobject.keda.sh/name": "job"}
QUEUE: Manifest = {"type": "prometheus", "metadata": {"query": "q", "threshold": "10"}}
HOURS: Manifest = {
    "type": "cron",
    "metadata": {"timezone": "UTC", "start": "2 * * * *", "end": "9 * * * *", "desiredReplicas": "3"},
}
VALUES = st.sampled_from([None, 0, 5, 20, 35, 90, 200])


@contextmanager
def nobody_rests() -> Iterator[None]:
    """The plain way: everybody is looked at in each round."""
    poll = ScaledObjectDesk._poll

    def restless(*arguments: Any) -> Any:
        return poll(*arguments)[0], False

    with patch.object(HorizontalDesk, "_rests", lambda *_: False), patch.object(ScaledObjectDesk, "_poll", restless):
        yield


def pod(cluster: Any, number: int, app: str, cpu: int | None, ready: bool) -> None:
    name = f"{app}-{number}"
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": cluster.time()}
    there = cluster.store.get(Key("Pod", "default", name))
    started = cluster.time() if there is None else there.status["startTime"]
    status = {"phase": "Running", "startTime": started, "conditions": [condition]}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    metadata = {"name": name, "labels": {"app": app}}
    cluster.put(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}, "status": status}
    )
    if cpu is not None:
        cluster.sample("cpu", f"{cpu}m", pod=name)


def scaled(cluster: Any, most: int, trigger: Manifest, fallback: bool) -> None:
    spec: Manifest = {"scaleTargetRef": {"name": "job"}, "maxReplicaCount": most, "cooldownPeriod": 60}
    spec |= {"triggers": [trigger], **({"fallback": {"failureThreshold": 3, "replicas": 4}} if fallback else {})}
    metadata = {"name": "job", "uid": "uid-scaled"}
    cluster.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec})


def by_cpu(cluster: Any, name: str, target: str) -> None:
    share = {"type": "Utilization", "averageUtilization": 50}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": share}}]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    cluster.autoscaler(name=name, metrics=metrics, scaleTargetRef=reference)


def removed(cluster: Any, kind: str, name: str) -> None:
    if cluster.store.get(Key(kind, "default", name)) is not None:
        cluster.remove(Key(kind, "default", name))


STEPS: st.SearchStrategy[Callable[[Any], None]] = st.one_of(
    st.sampled_from([1, 14, 15, 31, 100, 400, 1_000, 4_000]).map(lambda seconds: lambda c: c.advance(seconds)),
    VALUES.map(lambda value: lambda c: c.sample("queue", value)),
    VALUES.map(lambda value: lambda c: c.sample("s0-prometheus", value, LABELS)),
    st.integers(0, 6).map(lambda size: lambda c: c.deployment(size)),
    st.integers(0, 3).map(lambda size: lambda c: c.deployment(size, "job")),
    st.sampled_from([6, 30]).map(lambda most: lambda c: c.autoscaler(most=most, behavior={"scaleDown": {}})),
    st.just(lambda c: by_cpu(c, "other", "web")),
    st.just(lambda c: by_cpu(c, "twin", "job")),
    st.sampled_from(["web", "other", "twin"]).map(lambda name: lambda c: removed(c, AUTOSCALER, name)),
    st.tuples(st.integers(0, 2), st.sampled_from(["web", "job"]), VALUES, st.booleans()).map(
        lambda one: lambda c: pod(c, one[0], one[1], None if one[2] is None else one[2] * 10, one[3])
    ),
    st.integers(0, 2).map(lambda number: lambda c: removed(c, "Pod", f"web-{number}")),
    st.tuples(st.sampled_from([3, 5]), st.sampled_from([QUEUE, HOURS]), st.booleans()).map(
        lambda one: lambda c: scaled(c, *one)
    ),
    st.just(lambda c: removed(c, "ScaledObject.keda.sh", "job")),
    st.just(lambda c: c.restart()),
)


def _at_last(cluster: Any) -> None:
    cluster.advance(700)


def lived(cluster: Any, steps: list[Callable[[Any], None]]) -> list[tuple[Any, ...]]:
    """What is decided, and when."""
    found = list[tuple[Any, ...]]()
    cluster.deployment(2)
    cluster.deployment(1, "job")
    cluster.autoscaler()
    scaled(cluster, 5, QUEUE, fallback=False)
    for step in (*steps, _at_last):
        step(cluster)
        found += [(cluster.now, decision) for decision in cluster.decisions]
        cluster.decisions.clear()
    return found


@given(steps=st.lists(STEPS, max_size=25))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_decides_what_looks_in_every_round_decide(make_cluster: Any, steps: list[Callable[[Any], None]]) -> None:
    with nobody_rests():
        plain = lived(make_cluster(), steps)
    assert lived(make_cluster(), steps) == plain


def test_an_autoscaler_at_rest_asks_for_no_round(cluster: Any) -> None:
    cluster.deployment(2)
    cluster.sample("queue", 20)
    cluster.autoscaler()
    cluster.advance(360)
    assert cluster.core.deadline() is None
    cluster.sample("other", 20)
    assert cluster.core.deadline() is None, "nobody goes by that"
    cluster.sample("queue", 21)
    assert cluster.core.deadline() == cluster.now // 15_000 * 15_000 + 15_000


def test_a_scaled_object_at_rest_asks_for_no_poll(cluster: Any) -> None:
    cluster.deployment(0, "job")
    cluster.sample("s0-prometheus", 0, LABELS)
    scaled(cluster, 5, QUEUE, fallback=True)
    cluster.advance(400)
    assert cluster.core.deadline() is None
    cluster.sample("s0-prometheus", 20, LABELS)
    cluster.advance(30)
    assert cluster.replicas("job") == 1


def test_two_are_rivals_where_they_have_pods_in_common(cluster: Any) -> None:
    """Their targets are two, and their selectors, too; the pods of one are some of the other's."""
    for name in ("web", "wide"):
        cluster.deployment(2, name)
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        cluster.autoscaler(name=name, scaleTargetRef=reference)
    wide = cluster.store.objects[Key("Deployment.apps", "default", "wide")].manifest()
    wide["spec"] = {**wide["spec"], "selector": {"matchLabels": {"tier": "x"}}}
    cluster.put({key: wide[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    cluster.sample("queue", 90)
    cluster.advance(45)
    assert (cluster.replicas("web"), cluster.replicas("wide")) == (9, 9), "no pods, nothing in common"
    metadata = {"name": "p", "labels": {"app": "web", "tier": "x"}}
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": "Running"}})
    cluster.sample("queue", 200)
    cluster.advance(15)
    assert cluster.condition("ScalingActive", "web") == ("False", "AmbiguousSelector")
    assert cluster.condition("ScalingActive", "wide") == ("False", "AmbiguousSelector")
    cluster.remove(Key("Pod", "default", "p"))
    cluster.advance(15)
    assert (cluster.replicas("web"), cluster.replicas("wide")) == (18, 18)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_look_that_is_owed_is_remembered_and_made_by_a_successor(cluster: Any, steps: int) -> None:
    cluster.deployment(4)
    cluster.sample("queue", 40)
    cluster.autoscaler()
    cluster.sample("queue", 70)
    cluster.now += 15_000
    (lost,) = cluster.core.decide(cluster.now, frozenset())
    for number in range(steps):
        cluster.memory |= cluster.core.remember_parts()
        cluster.core.assume(str(number), lost)
        cluster.core.settle(Outcome(str(number), lost.name, lost.subject, False, {"": "stale"}))
        assert cluster.core.decide(cluster.now, frozenset()) == []
        cluster.memory |= cluster.core.remember_parts()
        if number < steps - 1:
            (lost,) = cluster.core.decide(cluster.now, frozenset())
    cluster.restart()
    assert cluster.replicas() == 7, "the successor looks at once, and not at the next round"


def test_a_service_that_sleeps_is_woken_by_a_load_and_not_by_a_zero(cluster: Any) -> None:
    api, child = "serving.kserve.io/v1beta1", Key("Deployment.apps", "default", "m-predictor-00001-deployment")
    predictor = {"minReplicas": 0, "scaleTarget": 10, "containers": [{"name": "kserve-container", "image": "model:1"}]}
    manifest = {
        "apiVersion": api,
        "kind": "InferenceService",
        "metadata": {"name": "m"},
        "spec": {"predictor": predictor},
    }
    cluster.put(manifest)

    def serving(pods: int) -> None:
        status = {"replicas": pods, "availableReplicas": pods}
        cluster.core.fold([cluster.store.put(cluster.store.objects[child].changed(status=status))], cluster.now)
        cluster.look()

    def load(value: int) -> None:
        described = {"apiVersion": api, "kind": "InferenceService", "name": "m"}
        spec = {"describedObject": described, "metric": {"name": "concurrency"}, "timestamp": cluster.time()}
        spec["value"] = str(value)
        cluster.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": "m"}, "spec": spec})

    serving(1)
    for _ in range(50):
        cluster.advance(2)
        load(0)
    assert cluster.replicas(child.name) == 0
    serving(0)
    assert cluster.core.deadline() is None
    cluster.advance(100)
    load(0)
    assert cluster.core.deadline() is None
    cluster.advance(2)
    load(5)
    assert cluster.replicas(child.name) == 1, "at once; and the time of silence was no load"
