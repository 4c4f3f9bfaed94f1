"""What the proxy is told of the facts."""

import importlib.util
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inference_gateway.domain.configuration import Configuration, Known, configuration
from inference_gateway.domain.envoy.bootstrap import bootstrap
from inference_gateway.domain.envoy.clusters import Place
from inference_gateway.domain.envoy.layout import HOLD, Layout

_BESIDE = importlib.util.spec_from_file_location("gateway_facts", Path(__file__).with_name("conftest.py"))
assert _BESIDE and _BESIDE.loader
beside = importlib.util.module_from_spec(_BESIDE)
_BESIDE.loader.exec_module(beside)
Facts, service, pod = beside.Facts, beside.service, beside.pod

LAYOUT = Layout("/run")


def hosts(told: Configuration) -> dict[str, Any]:
    return {host: one for one in told.routes["virtual_hosts"] for host in one["domains"]}


def test_services_that_sleep_cost_the_proxy_nothing(facts: Any, make_service: Any, make_pod: Any) -> None:
    """Only those with a replica that is ready are told; all else is asked about."""
    facts.put(*(make_service(f"s{number}") for number in range(100)))
    facts.put(make_pod("p", "s7-predictor", "10.0.0.7"))
    told = configuration(facts.directory, LAYOUT)
    assert [one["name"] for one in told.routes["virtual_hosts"]] == ["team/s7/predictor", "lost"]
    assert {"s7.team.example.com", "s7-predictor.team", "s7.models.tidegate.invalid", "*"} <= hosts(told).keys()
    assert told.clusters.keys() == {"team_s7-predictor", "team_s7-predictor_grpc"} == told.endpoints.keys()
    assert told.routable == {("team", "s7-predictor")}


def test_shares_lead_to_where_requests_wait_while_their_revision_has_no_replica(
    facts: Any, make_service: Any, make_pod: Any
) -> None:
    """The weights stay what they are."""
    facts.put(make_service("iris", {"iris-1": 90, "iris-2": 10}), make_pod("p", "iris-1", "10.0.0.1"))
    told = configuration(facts.directory, LAYOUT)
    for route in hosts(told)["iris.team"]["routes"]:
        clusters = route["route"]["weighted_clusters"]["clusters"]
        assert [one["weight"] for one in clusters] == [90, 10] and clusters[1]["name"] == HOLD
    assert told.endpoints["team_iris-2"] == (Place("/run/hold.sock"),)
    assert told.endpoints["team_iris-1"] == (Place("10.0.0.1", 8080),)


def test_a_post_is_sent_again_only_if_nobody_has_seen_it(facts: Any, make_service: Any, make_pod: Any) -> None:
    """Reads are sent again after a reset, too."""
    facts.put(make_service("iris"), make_pod("p", "iris-predictor", "10.0.0.1"))
    grpc, reads, others = hosts(configuration(facts.directory, LAYOUT))["iris.team"]["routes"]
    assert "grpc" in grpc["match"] and "headers" in reads["match"]
    unseen = {"connect-failure", "refused-stream", "reset-before-request"}
    assert [{*one["route"]["retry_policy"]["retry_on"].split(",")} - unseen for one in (grpc, reads, others)] == [
        set(),
        {"reset"},
        set(),
    ]


def test_the_order_of_facts_does_not_matter(facts: Any, make_service: Any, make_pod: Any) -> None:
    """The same facts in another order are told the same."""
    items = [make_service("b", {"b-1": 40, "b-2": 60}), make_service("a")]
    items += [
        make_pod(f"p{number}", app, f"10.0.0.{number}")
        for number, app in enumerate(("b-1", "b-2", "a-predictor", "b-1"))
    ]
    facts.put(*items)
    first = configuration(facts.directory, LAYOUT)
    again = type(facts)()
    for item in reversed(items):
        again.put(item)
    assert configuration(again.directory, LAYOUT) == first


def test_a_service_that_is_stopped_or_shares_out_nonsense_is_not_told(
    facts: Any, make_service: Any, make_pod: Any
) -> None:
    """Its requests are answered with the reason, or wait until the shares make a hundred."""
    facts.put(make_service("a", **{"serving.kserve.io/stop": "true"}), make_service("b", {"b-1": 50}))
    facts.put(make_pod("p", "a-predictor", "10.0.0.1"), make_pod("q", "b-1", "10.0.0.2"))
    assert configuration(facts.directory, LAYOUT).clusters == {}


def test_only_the_inner_listeners_believe_what_the_proxy_itself_noted(facts: Any) -> None:
    """Clients cannot choose their share, nor say that they have waited."""
    public, hold, again = bootstrap([("127.0.0.1", 7480)], 60, LAYOUT)["static_resources"]["listeners"]
    managers = [one["filter_chains"][0]["filters"][0]["typed_config"] for one in (public, hold, again)]
    stripped = [len(one.get("early_header_mutation_extensions", ())) for one in managers]
    assert stripped == [1, 0, 0]


CHANGES = st.tuples(
    st.sampled_from(["split", "limit", "ready", "unready", "gone"]), st.integers(0, 2), st.integers(1, 2)
)


@given(st.lists(CHANGES, max_size=25))
def test_what_was_told_before_spares_time_and_changes_nothing(changes: list[tuple[str, int, int]]) -> None:
    """After each of any changes it is what it would be without."""
    facts, known = Facts(), Known()
    for change, number, other in changes:
        name = f"s{number}"
        match change:
            case "split":
                facts.put(service(name, {f"{name}-1": 50 * other, **({f"{name}-2": 50} if other == 1 else {})}))
            case "limit":
                facts.put(
                    service(name, {f"{name}-1": 100}, spec={"predictor": {"model": {}, "containerConcurrency": other}})
                )
            case "gone":
                facts.remove_service(name)
            case _:
                facts.put(pod(f"{name}-{other}-pod", f"{name}-{other}", f"10.0.0.{number}", change == "ready"))
        assert configuration(facts.directory, LAYOUT, known) == configuration(facts.directory, LAYOUT)
