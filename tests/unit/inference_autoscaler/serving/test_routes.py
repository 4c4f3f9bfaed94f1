"""What leads requests from outside to an InferenceService: by weights, to nobody who is not ready, and no more than is asked for."""

from typing import Any

import pytest

from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.covering import covers
from inference_autoscaler.domain.policy import AutoscalerPolicy
from inference_autoscaler.domain.routing import Routing
from kube import Key, Outcome

SERVICE = "InferenceService.serving.kserve.io"
ROUTE = Key("HTTPRoute.gateway.networking.k8s.io", "default", "m")
INGRESS = Key("Ingress.networking.k8s.io", "default", "m")
BALANCER = Key("Service", "default", "m")
BY_GATEWAY = {"by": "HTTPRoute", "gateway": "infra/edge", "domain": "models.test"}


def routed(cluster: Any, **routes: str) -> None:
    """From now on a core with other settings decides."""
    cluster.core = AutoscalerCore(AutoscalerPolicy(routing=Routing.of(routes)))
    cluster.core.read_from(cluster.store)


def backends(cluster: Any) -> dict[str, int]:
    (rule,) = cluster.store.objects[ROUTE].spec["rules"]
    return {one["name"]: one["weight"] for one in rule["backendRefs"]}


def test_a_route_is_made_when_there_is_a_revision_to_lead_to(cluster: Any) -> None:
    routed(cluster, **BY_GATEWAY)
    cluster.serve()
    assert ROUTE not in cluster.store.objects
    cluster.ready()
    made = cluster.store.objects[ROUTE]
    assert made.spec["hostnames"] == ["m.default.models.test"]
    assert (made.spec["parentRefs"][0]["namespace"], made.spec["parentRefs"][0]["name"]) == ("infra", "edge")
    assert backends(cluster) == {"m-predictor-00001": 100}
    assert (made.controller or {})["uid"] == cluster.store.objects[Key(SERVICE, "default", "m")].uid
    cluster.look()
    assert cluster.condition("Ready", "m", SERVICE)[0] == "True"
    assert cluster.store.objects[Key(SERVICE, "default", "m")].status["url"] == "http://m.default.models.test"


def test_through_the_inference_gateway_a_route_is_there_while_its_service_sleeps(cluster: Any) -> None:
    """There requests wait, and shares are counted off: the route is the same whatever is ready, and whoever has which share."""
    routed(cluster, **BY_GATEWAY, through="tidegate/inference-gateway")
    cluster.serve()
    (rule,) = cluster.store.objects[ROUTE].spec["rules"]
    backend = {"group": "", "kind": "Service", "namespace": "tidegate", "name": "inference-gateway", "port": 80}
    assert rule == {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "backendRefs": [backend]}
    cluster.ready()
    cluster.serve("model:2", canaryTrafficPercent=20)
    cluster.ready("m-predictor-00002-deployment")
    assert cluster.store.objects[ROUTE].spec["rules"] == [rule]
    routed(cluster, **BY_GATEWAY)
    cluster.serve("model:2", canaryTrafficPercent=20)
    assert backends(cluster) == {"m-predictor-00001": 80, "m-predictor-00002": 20}


@pytest.mark.parametrize("more", [{"through": "gateway"}, {"by": "Ingress", "through": "a/b"}])
def test_only_http_routes_lead_through_a_service_that_is_named_in_full(more: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="through"):
        Routing.of({**BY_GATEWAY, **more})


def test_a_route_that_may_not_lead_there_is_told(cluster: Any) -> None:
    """A ReferenceGrant is missing: the gateway of the cluster says so."""
    routed(cluster, **BY_GATEWAY, through="tidegate/inference-gateway")
    cluster.serve()
    cluster.ready()
    refused = {"type": "ResolvedRefs", "status": "False", "reason": "RefNotPermitted", "message": "no ReferenceGrant"}
    status = {"parents": [{"conditions": [{"type": "Accepted", "status": "True"}, refused]}]}
    made = cluster.store.objects[ROUTE]
    cluster.core.fold([cluster.store.put(made.changed(status=status))], cluster.now)
    cluster.look()
    assert cluster.condition("IngressReady", "m", SERVICE)[0] == "False"


def test_weights_follow_the_rollout_and_a_revision_that_is_not_ready_has_none(cluster: Any) -> None:
    routed(cluster, **BY_GATEWAY)
    cluster.serve()
    cluster.ready()
    cluster.serve("model:2", canaryTrafficPercent=20)
    assert backends(cluster) == {"m-predictor-00001": 100}
    cluster.ready("m-predictor-00002-deployment")
    assert backends(cluster) == {"m-predictor-00001": 80, "m-predictor-00002": 20}
    assert cluster.decisions[-1].name == "TrafficSplit" or cluster.decisions[-2].name == "TrafficSplit"


def test_an_ingress_and_a_balancer_lead_to_the_largest_share(cluster: Any) -> None:
    routed(cluster, by="Ingress", ingressClass="nginx")
    cluster.serve()
    cluster.ready()
    cluster.serve("model:2", canaryTrafficPercent=20)
    cluster.ready("m-predictor-00002-deployment")
    spec = cluster.store.objects[INGRESS].spec
    backend = spec["rules"][0]["http"]["paths"][0]["backend"]["service"]
    assert (spec["ingressClassName"], backend) == ("nginx", {"name": "m-predictor-00001", "port": {"number": 80}})
    routed(cluster, by="LoadBalancer")
    cluster.core.fold([], cluster.now)
    cluster.serve("model:2", canaryTrafficPercent=90)
    spec = cluster.store.objects[BALANCER].spec
    assert (spec["type"], spec["selector"]) == ("LoadBalancer", {"app": "isvc.m-predictor-00002"})
    assert INGRESS not in cluster.store.objects


def test_a_balancer_leads_nobody_to_it_before_it_has_an_address(cluster: Any) -> None:
    routed(cluster, by="LoadBalancer")
    cluster.serve()
    cluster.ready()
    cluster.look()
    assert cluster.condition("IngressReady", "m", SERVICE) == ("False", "RouteNotReady")
    made = cluster.store.objects[BALANCER]
    status = {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}
    cluster.core.fold([cluster.store.put(made.changed(status=status))], cluster.now)
    cluster.look()
    assert cluster.condition("Ready", "m", SERVICE)[0] == "True"


def test_in_standard_mode_the_route_leads_to_the_service_of_the_predictor(cluster: Any) -> None:
    routed(cluster, **BY_GATEWAY)
    cluster.serve(mode="RawDeployment")
    cluster.ready("m-predictor")
    assert backends(cluster) == {"m-predictor": 100}
    assert cluster.store.objects[ROUTE].spec["hostnames"] == ["m-default.models.test"]


def test_what_is_somebody_elses_is_left_alone_and_told(cluster: Any) -> None:
    routed(cluster, **BY_GATEWAY)
    theirs = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "m"}, "spec": {}}
    cluster.put(theirs)
    cluster.serve()
    cluster.ready()
    assert cluster.store.objects[ROUTE].spec == {}
    assert cluster.condition("IngressReady", "m", SERVICE) == ("False", "RouteNotReady")


def test_a_route_that_its_gateway_does_not_take_is_told(cluster: Any) -> None:
    routed(cluster, **BY_GATEWAY)
    cluster.serve()
    cluster.ready()
    refused = {"type": "Accepted", "status": "False", "reason": "NotAllowedByListeners", "message": "no listener"}
    made = cluster.store.objects[ROUTE]
    status = {"parents": [{"conditions": [refused]}]}
    cluster.core.fold([cluster.store.put(made.changed(status=status))], cluster.now)
    cluster.look()
    assert cluster.condition("Ready", "m", SERVICE) == ("False", "RouteNotReady")


def test_what_is_refused_twice_is_tried_again_in_the_next_tick_and_not_before(cluster: Any) -> None:
    """A cluster without the kind refuses each time: that must not keep everybody busy."""
    routed(cluster, **BY_GATEWAY)
    cluster.serve()
    key = Key(SERVICE, "default", "m")
    deployment = cluster.store.objects[Key("Deployment.apps", "default", "m-predictor-00001-deployment")]
    status = {"replicas": 1, "availableReplicas": 1}
    cluster.core.fold([cluster.store.put(deployment.changed(status=status))], cluster.now)
    tries = 0
    while cluster.core.decide(cluster.now, frozenset()):
        tries += 1
        cluster.core.settle(Outcome("", "TrafficSplit", key, False, {str(ROUTE): "the cluster has no such kind"}))
        assert tries < 5
    assert tries == 2
    assert cluster.core.deadline() == cluster.now + 2000
    cluster.now += 2000
    assert cluster.core.decide(cluster.now, frozenset())


def test_a_stopped_service_gives_up_its_route(cluster: Any) -> None:
    routed(cluster, **BY_GATEWAY)
    cluster.serve()
    cluster.ready()
    item = cluster.store.objects[Key(SERVICE, "default", "m")].manifest()
    item["metadata"]["annotations"]["serving.kserve.io/stop"] = "true"
    cluster.put(item)
    assert ROUTE not in cluster.store.objects


@pytest.mark.parametrize(
    ("routes", "complaint"),
    [
        ({"by": "Tunnel"}, "Tunnel"),
        ({"by": "HTTPRoute"}, "NAMESPACE/NAME"),
        ({"by": "HTTPRoute", "gateway": "edge"}, "NAMESPACE/NAME"),
        ({"way": "HTTPRoute"}, "way"),
    ],
)
def test_settings_that_make_no_sense_are_refused(routes: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Routing.of(routes)


@pytest.mark.parametrize(
    ("there", "wanted", "covered"),
    [
        ({"a": 1, "filled-in": 2}, {"a": 1}, True),
        ({"a": 2}, {"a": 1}, False),
        ({}, {"a": 1}, False),
        ([{"a": 1, "filled-in": 2}], [{"a": 1}], True),
        ([{"a": 1}, {"a": 2}], [{"a": 1}], False),
        ({"averageValue": "1"}, {"averageValue": "1000m"}, True),
        ({"averageValue": "1"}, {"averageValue": "1001m"}, False),
        ("web", "api", False),
    ],
)
def test_what_a_server_fills_in_or_writes_its_own_way_is_no_difference(there: Any, wanted: Any, covered: bool) -> None:
    assert covers(there, wanted) is covered
