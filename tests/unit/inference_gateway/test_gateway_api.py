"""Routes for clusters whose own gateway carries the requests."""

from typing import Any

from inference_gateway.domain.gateway_api import http_routes, ingress, load_balancer
from inference_gateway.domain.serving.service import Service, read

GATEWAY = ("infra", "public")


def told(item: Any) -> Service:
    found = read(item)
    assert found is not None
    return found


def test_an_http_route_has_the_shares_as_weights_and_goes_with_its_service(make_service: Any) -> None:
    """Under both of its public hosts, at the gateway that was named."""
    service = told(make_service("iris", {"iris-1": 90, "iris-2": 10}))
    route, component = http_routes(service, "example.com", GATEWAY)
    assert route["metadata"]["name"] == "iris" and component["metadata"]["name"] == "iris-predictor"
    (owner,) = route["metadata"]["ownerReferences"]
    assert owner["kind"] == "InferenceService" and owner["uid"] == service.uid and owner["controller"]
    assert route["spec"]["hostnames"] == ["iris.team.example.com", "iris-team.example.com"]
    assert route["spec"]["parentRefs"][0]["name"] == "public"
    (rule,) = route["spec"]["rules"]
    assert [(one["name"], one["weight"]) for one in rule["backendRefs"]] == [("iris-1", 90), ("iris-2", 10)]


def test_explanations_go_to_the_explainer_before_all_else(make_service: Any) -> None:
    """By the path, as KServe has it."""
    service = told(make_service("iris", spec={"explainer": {"containers": []}}))
    explained, others = http_routes(service, "example.com", GATEWAY)[0]["spec"]["rules"]
    assert explained["matches"][0]["path"]["value"].endswith(":explain$")
    assert (
        explained["backendRefs"][0]["name"] == "iris-explainer" and others["backendRefs"][0]["name"] == "iris-predictor"
    )


def test_nobody_is_routed_to_who_may_get_no_requests(make_service: Any) -> None:
    """Neither before the first revision is ready, nor once it is stopped."""
    for service in (told(make_service("iris", {})), told(make_service("iris", **{"serving.kserve.io/stop": "true"}))):
        assert http_routes(service, "example.com", GATEWAY) == []
        assert ingress(service, "example.com", "nginx") is None


def test_an_ingress_is_for_one_revision_alone(make_service: Any) -> None:
    """It knows no shares; a host has one backend."""
    made = ingress(told(make_service("iris", {"iris-1": 100})), "example.com", "nginx")
    assert made is not None and made["spec"]["ingressClassName"] == "nginx"
    (path,) = made["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"] == {"name": "iris-1", "port": {"number": 80}}
    assert ingress(told(make_service("iris", {"iris-1": 90, "iris-2": 10})), "example.com", "") is None


def test_a_load_balancer_leads_to_the_pods_of_the_one_that_answers(make_service: Any) -> None:
    """And goes with the service, too."""
    made = load_balancer(told(make_service("iris")))
    assert made is not None and made["spec"]["type"] == "LoadBalancer"
    assert made["spec"]["selector"] == {"app": "isvc.iris-predictor"} and made["metadata"]["ownerReferences"]
    assert load_balancer(told(make_service("iris", {"iris-1": 90, "iris-2": 10}))) is None
