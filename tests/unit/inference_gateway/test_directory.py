"""Who is asked under which name, and who may answer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_gateway.domain.holding import Bounds, Goal, Refusal, Waiting, goal_of
from inference_gateway.domain.serving.directory import concerns
from inference_gateway.domain.serving.service import Component
from kube import Key, Object

POOL = ("team", "iris-predictor")


def test_a_host_in_any_of_its_forms_means_the_service(facts: Any, make_service: Any) -> None:
    """Ports and case do not matter."""
    facts.put(make_service("iris"))
    for host in ("iris.team.example.com", "iris-team.example.com:8080", "IRIS.team", "iris-predictor.team.svc"):
        service, component = facts.directory.meant(host, "/")
        assert (service.key.name, component) == ("iris", "predictor")
    assert facts.directory.meant("iris.other.example.com", "/") is None


def test_a_host_that_two_could_mean_is_the_one_that_names_it_plainly(facts: Any, make_service: Any) -> None:
    """``a-b-c.example.com`` is both ``a`` in ``b-c`` and ``a-b`` in ``c``: always the same of them is meant, by name."""
    one, other = make_service("a", namespace="b-c"), make_service("a-b", namespace="c")
    facts.put(other, one)
    assert facts.directory.meant("a-b-c.example.com", "/")[0].key == one.key
    assert facts.directory.meant("a-b.c.example.com", "/")[0].key == other.key


def test_a_name_alone_means_the_service_of_the_only_namespace_that_has_it(facts: Any, make_service: Any) -> None:
    """So pods ask within a namespace; where several have it they are named."""
    facts.put(make_service("iris"), make_service("rose", namespace="other"))
    assert facts.directory.meant("iris:80", "/")[0].key.name == "iris"
    assert facts.directory.meant("rose-predictor", "/")[0].key.name == "rose"
    facts.put(make_service("iris", namespace="other"))
    assert facts.directory.meant("iris", "/") is None and facts.directory.meant("iris.team", "/") is not None
    refused = goal_of(facts.directory, "iris", "/", 0)
    assert isinstance(refused, Refusal) and refused.body["reason"] == "AmbiguousName"
    assert "iris.other, iris.team" in refused.body["error"]


def test_a_transformer_is_asked_first_and_an_explainer_for_explanations(facts: Any, make_service: Any) -> None:
    """Each component has a host of its own, too."""
    facts.put(make_service("iris", spec={"transformer": {"containers": []}, "explainer": {"containers": []}}))
    asked = {
        path: facts.directory.meant("iris.team", path)[1]
        for path in ("/v1/models/iris:predict", "/v1/models/iris:explain?a=b")
    }
    assert [*asked.values()] == ["transformer", "explainer"]
    assert facts.directory.meant("iris-predictor.team", "/v1/models/iris:explain")[1] == "predictor"


def test_a_model_belongs_to_the_service_that_says_so(facts: Any, make_service: Any) -> None:
    """By its name, by what its server is told, by its annotation; where two say so neither is meant, and both are named."""
    told = {"predictor": {"model": {"args": ["--model_name=tulip", "--load-model=*"]}}}
    facts.put(make_service("iris", **{"tidegate.dev/models": "rose, lily"}), make_service("other", spec=told))
    for model, name in (("iris", "iris"), ("rose", "iris"), ("lily", "iris"), ("tulip", "other")):
        assert facts.directory.meant("10.0.0.1:7480", f"/v2/models/{model}/infer")[0].key.name == name
    facts.put(make_service("rose"))
    refused = goal_of(facts.directory, "10.0.0.1", "/v1/models/rose:predict", 0)
    assert isinstance(refused, Refusal) and refused.status == 404
    assert refused.body["reason"] == "AmbiguousModel" and "iris.team.example.com" in refused.body["error"]


def test_an_agent_is_asked_before_its_server_and_not_by_grpc(facts: Any, make_pod: Any) -> None:
    """What comes over HTTP/1.1 is batched and logged; gRPC goes to the server itself."""
    server = {"name": "kserve-container", "ports": [{"containerPort": 8080}, {"containerPort": 9000, "name": "grpc"}]}
    agent = {"name": "agent", "ports": [{"name": "agent-port", "containerPort": 9081}]}
    facts.put(make_pod("p", "iris-predictor", "10.0.0.1", containers=[server, agent]))
    (replica,) = facts.directory.ready(POOL)
    assert (replica.http, replica.grpc) == (9081, 9000)


def test_a_graph_is_asked_by_its_name_and_answered_by_its_router(facts: Any, make_pod: Any) -> None:
    """It has no other component, and is no model."""
    facts.put(Object(Key("InferenceGraph.serving.kserve.io", "team", "flow"), "u", {}, {"spec": {"nodes": {}}}, {}))
    facts.put(make_pod("p", "flow", "10.0.0.1"))
    service, component = facts.directory.meant("flow-team.example.com", "/")
    assert service.parts[component].choose(0) == ("team", "flow") and facts.directory.ready(("team", "flow"))
    assert facts.directory.meant("x", "/v2/models/flow/infer") is None and not service.is_measured


def test_only_what_matters_to_requests_is_a_change(facts: Any, make_service: Any, make_pod: Any) -> None:
    """Pods of others, and what is said again, are none."""
    assert facts.put(make_service("iris"))
    assert not facts.put(make_service("iris"))
    assert not facts.put(make_pod("p", "iris-predictor", "10.0.0.1", ready=False))
    assert facts.put(make_pod("p", "iris-predictor", "10.0.0.1"))
    assert not facts.put(make_pod("p", "iris-predictor", "10.0.0.1"))
    going = make_pod("p", "iris-predictor", "10.0.0.1")
    assert facts.put(going.changed(metadata={**going.metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert facts.directory.ready(POOL) == ()


@pytest.mark.parametrize(
    ("container", "ports"),
    [
        ({}, (8080, 8080)),
        ({"ports": [{"containerPort": 9090}]}, (9090, 9090)),
        ({"ports": [{"containerPort": 9000, "name": "h2c"}]}, (9000, 9000)),
        ({"ports": [{"containerPort": 8000}, {"containerPort": 8001}]}, (8000, 8001)),
        ({"args": ["--http_port=8085", "--grpc_port", "8086"]}, (8085, 8086)),
        ({"ports": [{"containerPort": 8080}], "args": ["--grpc-port=9000"]}, (8080, 9000)),
    ],
)
def test_ports_are_found_by_name_by_arguments_and_by_habit(
    facts: Any, make_pod: Any, container: Any, ports: tuple[int, int]
) -> None:
    """For HTTP/1.1 and for gRPC."""
    facts.put(
        make_pod(
            "p", "iris-predictor", "10.0.0.1", containers=[{"name": "agent"}, {"name": "kserve-container", **container}]
        )
    )
    (replica,) = facts.directory.ready(POOL)
    assert (replica.http, replica.grpc) == ports


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 10_000))
def test_of_a_hundred_requests_in_a_row_each_pool_gets_its_very_share(shares: list[int], first: int) -> None:
    """Whatever the shares are, and wherever one begins to count."""
    shares = [*shares, 100 - sum(shares)] if sum(shares) < 100 else [100]
    component = Component(tuple((("team", f"r{place}"), share) for place, share in enumerate(shares)))
    chosen = [component.choose(count * 61 % 100) for count in range(first, first + 100)]
    assert [chosen.count(pool) for pool, _ in component.split] == shares


def test_what_waits_is_counted_by_pool_and_in_all(facts: Any, make_service: Any) -> None:
    """One more than either bound is refused, with the numbers; whoever leaves makes room."""
    facts.put(make_service("a", {"a-1": 50, "a-2": 50}), make_service("b", {"b-1": 100}))
    waiting = Waiting(Bounds(2, 3, 60))
    goals = [
        goal_of(facts.directory, host, "/", number) for host, number in (("a.team", 0), ("a.team", 99), ("b.team", 0))
    ]
    first, second, third = (goal for goal in goals if isinstance(goal, Goal))
    assert first.pool != second.pool
    assert [waiting.enter(goal) for goal in (first, first)] == [None, None]
    refused = waiting.enter(first)
    assert refused is not None and refused.status == 503 and "2 requests wait for a-1 already" in refused.body["error"]
    assert waiting.enter(second) is None and waiting.enter(third) is not None
    assert waiting.by_service() == {first.service.key: 3}
    waiting.leave(first)
    assert waiting.enter(third) is None


def test_pods_that_serve_no_requests_are_not_even_kept() -> None:
    assert concerns("Pod", {"labels": {"app": "isvc.m-predictor"}})
    assert not any(concerns("Pod", told) for told in ({}, {"labels": {"app": "web"}}, {"labels": {"role": "isvc.m"}}))
    assert concerns("InferenceService.serving.kserve.io", {})
