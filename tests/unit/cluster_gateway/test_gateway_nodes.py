"""What nodes say, what they are told, and nodes that only pretend."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from cluster_gateway.domain.simulated_nodes import LOST_NODE_MS, SimulationSettings
from kube import Key, Manifest, Object, rfc3339
from kube.pods import has_condition
from tidegate import subjects
from tidegate.node.v1 import node_pb2


def pod(name: str, node: str = "", namespace: str = "default", **parts: Any) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": namespace, **parts.pop("metadata", {})}
    spec = {"containers": [{"name": "main", **parts.pop("container", {})}], **parts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, **({"nodeName": node} if node else {})},
    }


def assignment(rig: Any, node: str) -> node_pb2.Assignment:
    return node_pb2.Assignment.FromString(rig.bus._values[subjects.assignment(node)])


def assigned(rig: Any, node: str) -> list[str]:
    return [orjson.loads(item)["metadata"]["name"] for item in assignment(rig, node).pods]


def phase(rig: Any, name: str = "p") -> str:
    return str(rig.pod(name).status.get("phase"))


# --- reports --------------------------------------------------------------------------------------------------------


def test_a_node_registers_itself_and_reports_what_changed(rig: Any) -> None:
    rig.report("n1", metadata={"labels": {"zone": "a"}}, status={"allocatable": {"cpu": "8"}})
    rig.report(
        "n1",
        metadata={"labels": {"zone": "b", "rack": "1"}},
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    )
    node = rig.get("Node", "n1", "")
    assert node.labels == {"kubernetes.io/hostname": "n1", "zone": "b", "rack": "1"}
    assert node.status["allocatable"] == {"cpu": "8"} and node.status["conditions"][0]["type"] == "Ready"


def test_a_report_of_a_pod_becomes_its_status(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"))
    reply = rig.report("n1", pods=[(rig.pod("p"), {"phase": "Running", "startTime": "now"})])
    assert reply.revision == rig.revision and not reply.error
    assert (phase(rig), rig.pod("p").status["startTime"]) == ("Running", "now")


def test_a_report_that_is_said_again_changes_nothing_more(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"))
    running = [(rig.pod("p"), {"phase": "Running"})]
    first = rig.report("n1", pods=running)
    assert rig.report("n1", pods=running).revision == first.revision == rig.revision


@pytest.mark.parametrize(
    ("before", "late"),
    [
        ("Succeeded", "Running"),
        ("Failed", "Pending"),
        ("Running", "Pending"),
        ("Succeeded", "Failed"),
        ("Failed", "Succeeded"),
    ],
)
def test_a_late_report_does_not_bring_a_pod_back(rig: Any, before: str, late: str) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"))
    rig.report("n1", pods=[(rig.pod("p"), {"phase": before})])
    revision = rig.revision
    assert not rig.report("n1", pods=[(rig.pod("p"), {"phase": late})]).error
    assert phase(rig) == before and rig.revision == revision


def test_reports_of_pods_that_are_not_the_nodes_own_are_passed_over(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"), pod("free"))
    mine, free = rig.pod("p"), rig.pod("free")
    unknown = Object(Key("Pod", "default", "unknown"), "u")
    recreated = Object(mine.key, "an older uid")
    for node, item in (("n2", mine), ("n1", free), ("n1", unknown), ("n1", recreated)):
        assert not rig.report(node, pods=[(item, {"phase": "Running"})], gone=[item.uid]).error
    assert phase(rig) == "Pending" and phase(rig, "free") == "Pending" and rig.names("Pod") == ["free", "p"]


def test_a_pod_that_nobody_deleted_is_not_gone(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"))
    rig.report("n1", gone=[rig.pod("p").uid])
    assert rig.names("Pod") == ["p"]


def test_what_cannot_be_read_of_a_report_is_told_and_the_rest_is_taken(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"), pod("q", "n1"))
    p, q = rig.pod("p"), rig.pod("q")
    reply = rig.report("n1", pods=[(p, ["no", "status"]), (q, {"phase": "Running"})])
    assert "AttributeError" in reply.error
    assert (phase(rig, "p"), phase(rig, "q")) == ("Pending", "Running")
    broken = node_pb2.Report(node="n1", node_status=b"{no json", gone=["x"])
    answer = rig.do(rig.bus.request(subjects.report("n1"), broken.SerializeToString()))
    assert node_pb2.ReportReply.FromString(answer).error
    assert not rig.report("n1", status={"x": 1}).error


def test_what_fails_for_the_cluster_side_itself_fails_for_it_alone(rig: Any) -> None:
    def fail(cluster: Any) -> None:
        cluster.create(Key("ConfigMap", "default", "half"), {}, {}, {})
        raise LookupError("no such node")

    with pytest.raises(LookupError):
        rig.enact(fail)
    rig.node("n1")
    assert rig.names("ConfigMap") == []


def test_a_silent_node_is_not_ready_until_it_is_heard_again(rig: Any) -> None:
    rig.node("n1")
    rig.node("sim", simulated=True)

    def ready(name: str) -> list[str]:
        return [item["status"] for item in rig.get("Node", name, "").status["conditions"] if item["type"] == "Ready"]

    rig.loop.advance(39_000)
    rig.do(rig.bus.publish(subjects.heartbeat("n1"), b"n1"))
    rig.loop.advance(39_999)
    assert ready("n1") == ["True"]
    rig.loop.advance(1)
    assert ready("n1") == ["Unknown"] and ready("sim") == ["True"]
    rig.do(rig.bus.publish(subjects.heartbeat("n1"), b"n1"))
    rig.loop.settle()
    assert ready("n1") == ["True"]


# --- assignments ----------------------------------------------------------------------------------------------------


def test_a_node_is_told_its_pods_and_what_they_name(rig: Any) -> None:
    rig.node("n1")
    named = {"envFrom": [{"configMapRef": {"name": "c"}}]}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
    rig.write(config, pod("p", "n1", container=named), pod("q"))
    told = assignment(rig, "n1")
    assert assigned(rig, "n1") == ["p"] and told.revision == rig.revision
    assert {name: orjson.loads(body) for name, body in told.config_maps.items()} == {"default/c": {"data": {"k": "v"}}}
    rig.write({**config, "data": {"k": "w"}}, force=True)
    assert orjson.loads(assignment(rig, "n1").config_maps["default/c"]) == {"data": {"k": "w"}}
    rig.delete(Key("Pod", "default", "p"))
    (marked,) = [orjson.loads(item) for item in assignment(rig, "n1").pods]
    assert "deletionTimestamp" in marked["metadata"]
    rig.report("n1", gone=[rig.pod("p").uid])
    assert assigned(rig, "n1") == []


def test_a_status_alone_is_no_news_for_the_node_that_said_it(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"))
    before = assignment(rig, "n1").revision
    rig.report("n1", pods=[(rig.pod("p"), {"phase": "Running"})])
    assert assignment(rig, "n1").revision == before


def test_simulated_nodes_are_told_nothing(rig: Any) -> None:
    rig.node("sim", simulated=True)
    rig.write(pod("p", "sim"))
    rig.delete(Key("Pod", "default", "p"))
    rig.loop.advance(1_000)
    assert rig.names("Pod") == [] and rig.bus._values == {}


def test_the_assignments_are_sent_again_by_a_successor(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"))
    rig.kill()
    rig.bus._values.clear()
    rig.start()
    assert assigned(rig, "n1") == ["p"]


def test_pods_know_their_peers_by_name_wherever_these_run(rig: Any) -> None:
    rig.node("n1")
    rig.node("n2")
    rig.write(pod("a", "n1", hostname="worker-0", subdomain="job"))
    rig.write(pod("b", "n2"), pod("stranger", "n2", namespace="other"))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "x"}}}
    rig.write(service, pod("c", "n2", metadata={"labels": {"app": "x"}}))
    hosts = {(entry.namespace, entry.address): set(entry.names) for entry in assignment(rig, "n1").hosts}
    addresses = {name: rig.pod(name).status["podIP"] for name in "abc"}
    assert set(hosts) == {("default", address) for address in addresses.values()}
    forms = ("job", "job.default", "job.default.svc", "job.default.svc.cluster.local")
    assert hosts["default", addresses["a"]] == {"a", "worker-0", *(f"worker-0.{form}" for form in forms)}
    assert hosts["default", addresses["b"]] == {"b"}
    assert {"c", "web", "web.default.svc.cluster.local"} <= hosts["default", addresses["c"]]


@pytest.mark.parametrize("gateway", ["127.0.0.80", ""])
def test_names_of_inference_services_lead_to_the_gateway_first(rig: Any, gateway: str) -> None:
    """Whether they have pods or not: there requests wait. Those of revisions lead to their pods."""
    rig.kill()
    rig.settings = replace(rig.settings, inference_gateway=gateway)
    rig.start()
    rig.node("n1")
    labels = {"app": "isvc.iris-predictor"}
    rig.write(pod("iris-1", "n1", metadata={"labels": labels}))
    api = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    rig.write({**api, "metadata": {"name": "iris"}, "spec": {"predictor": {}}})
    own = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "iris-predictor"}, "spec": {"selector": labels}}
    rig.write(own, {**api, "metadata": {"name": "far", "namespace": "other"}, "spec": {"predictor": {}}})

    def addresses(name: str) -> list[str]:
        return [entry.address for entry in assignment(rig, "n1").hosts if name in entry.names]

    pods = [rig.pod("iris-1").status["podIP"]]
    first = [gateway] if gateway else []
    for form in ("", ".default", ".default.svc", ".default.svc.cluster.local"):
        assert addresses(f"iris{form}") == first
        assert addresses(f"iris-predictor{form}") == [*first, *pods]
    assert addresses("iris-explainer") == addresses("far") == []
    if gateway:
        rig.write({**api, "metadata": {"name": "iris"}, "spec": {"predictor": {}, "explainer": {}}}, force=True)
        assert addresses("iris-explainer.default.svc") == [gateway]


def test_no_two_pods_have_one_address_and_a_freed_one_rests(rig: Any) -> None:
    rig.node("n1")
    given: list[str] = []
    for turn in range(4):
        names = [f"p{turn}-{number}" for number in range(3)]
        rig.write(*(pod(name, "n1") for name in names))
        given += [rig.pod(name).status["podIP"] for name in names]
        gone = rig.pod(names[0])
        rig.delete(gone.key)
        rig.report("n1", gone=[gone.uid])
        if turn == 1:
            rig.restart()
    assert len(set(given)) == len(given) == 12
    assert all(address.startswith("127.") and rig.pod("p0-1").status["podIPs"] for address in given)


def test_an_address_that_is_none_is_passed_over(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", "n1"), pod("q"))
    rig.report("n1", pods=[(rig.pod("p"), {"phase": "Running", "podIP": "127.banana"})])
    assert not rig.write(pod("r", "n1")).error
    assert rig.pod("r").status["podIP"].startswith("127.64.")


# --- simulated nodes --------------------------------------------------------------------------------------------------


@pytest.fixture
def pretending(make_rig: Any) -> Any:
    rig = make_rig(simulation=SimulationSettings(pod_start_ms=2_000, termination_ms=3_000))
    rig.node("sim", simulated=True)
    return rig


def test_a_simulated_pod_starts_runs_for_its_time_and_succeeds(pretending: Any) -> None:
    rig = pretending
    rig.write(pod("p", "sim", metadata={"annotations": {"simulate/duration": "10s"}}), pod("q", "sim"))
    rig.loop.advance(1_999)
    assert phase(rig) == "Pending"
    rig.loop.advance(1)
    running = rig.pod("p").status
    assert running["phase"] == "Running" and running["startTime"] == rfc3339(rig.loop.now_ms)
    assert {c["type"]: c["status"] for c in running["conditions"]} == {"ContainersReady": "True", "Ready": "True"}
    rig.loop.advance(9_999)
    assert phase(rig) == "Running"
    rig.loop.advance(1)
    ended = rig.pod("p").status
    assert ended["phase"] == "Succeeded"
    assert ended["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    rig.loop.advance(3_600_000)
    assert phase(rig, "q") == "Running"


def test_a_simulated_pod_answers_what_it_is_asked_once_it_is_ready(pretending: Any) -> None:
    rig = pretending
    asked = '{"a.dev/web": {"tcpSocket": {"port": 80}}}'
    rig.write(pod("p", "sim", metadata={"annotations": {"tidegate.dev/probes": asked}}), pod("q", "sim"))
    assert not has_condition(rig.pod("p").status, "a.dev/web")
    rig.loop.advance(2_000)
    assert has_condition(rig.pod("p").status, "a.dev/web")
    assert not has_condition(rig.pod("q").status, "a.dev/web")


def test_pods_that_are_gone_before_they_would_have_started_start_nowhere(pretending: Any) -> None:
    rig = pretending
    rig.write(*(pod(name, "sim", metadata={"annotations": {"simulate/termination": "0s"}}) for name in "ab"), pod("c"))
    rig.loop.advance(500)
    for name in "ab":
        rig.delete(Key("Pod", "default", name))
    rig.loop.advance(5_000)
    assert rig.names("Pod") == ["c"] and rig.gateway.ready.is_set()


def test_a_pods_own_times_win(pretending: Any) -> None:
    rig = pretending
    own = {"simulate/start": "500ms", "simulate/termination": "7s"}
    rig.write(pod("p", "sim", metadata={"annotations": own}))
    rig.loop.advance(500)
    assert phase(rig) == "Running"
    rig.delete(Key("Pod", "default", "p"))
    rig.loop.advance(6_999)
    assert rig.names("Pod") == ["p"]
    rig.loop.advance(1)
    assert rig.names("Pod") == []


def test_a_pod_that_is_deleted_before_it_starts_never_runs(pretending: Any) -> None:
    rig = pretending
    rig.write(pod("p", "sim"))
    rig.loop.advance(1_000)
    rig.delete(Key("Pod", "default", "p"))
    rig.loop.advance(2_000)
    assert phase(rig) == "Pending" and rig.pod("p").deleting
    rig.loop.advance(1_000)
    assert rig.names("Pod") == []


def test_a_pod_of_the_same_name_does_not_inherit_what_was_due(pretending: Any) -> None:
    rig = pretending
    rig.write(pod("p", "sim", metadata={"annotations": {"simulate/duration": "10s"}}))
    rig.loop.advance(3_000)
    rig.delete(Key("Pod", "default", "p"))
    rig.loop.advance(3_000)
    rig.write(pod("p", "sim"))
    rig.loop.advance(60_000)
    assert phase(rig) == "Running"


def test_the_pods_of_a_lost_node_are_gone_after_a_while(pretending: Any) -> None:
    rig = pretending
    rig.write(pod("p", "sim", metadata={"annotations": {"simulate/duration": "10s"}}), pod("other"))
    rig.loop.advance(5_000)
    rig.delete(Key("Node", "", "sim"))
    rig.loop.advance(LOST_NODE_MS - 1)
    assert phase(rig) == "Running", "a node that is gone says nothing of its pods"
    rig.loop.advance(1)
    assert rig.names("Pod") == ["other"]


def test_a_node_that_comes_back_in_time_has_its_pods_again(pretending: Any) -> None:
    rig = pretending
    rig.write(pod("p", "sim", metadata={"annotations": {"simulate/duration": "10s"}}))
    rig.loop.advance(5_000)
    rig.delete(Key("Node", "", "sim"))
    rig.loop.advance(20_000)
    rig.node("sim", simulated=True)
    rig.loop.advance(LOST_NODE_MS)
    assert phase(rig) == "Succeeded"


def test_pods_of_a_node_that_was_lost_before_a_restart_are_gone_after_a_while(pretending: Any) -> None:
    rig = pretending
    rig.write(pod("p", "sim"))
    rig.loop.advance(5_000)
    rig.delete(Key("Node", "", "sim"))
    rig.restart()
    rig.loop.advance(LOST_NODE_MS)
    assert rig.names("Pod") == []


@pytest.mark.parametrize("at", range(0, 20, 1))
def test_a_restart_at_any_second_changes_no_times(pretending: Any, at: int) -> None:
    rig = pretending
    rig.write(
        pod("p", "sim", metadata={"annotations": {"simulate/duration": "10s"}}),
        pod("q", "sim", metadata={"annotations": {"simulate/termination": "9s"}}),
    )
    seen: dict[str, int] = {}
    for second in range(25):
        if second == at:
            rig.restart()
        if second == 6:
            rig.delete(Key("Pod", "default", "q"))
        names = rig.names("Pod")
        now = {f"p {phase(rig)}": second, ("q there" if "q" in names else "q gone"): second}
        seen = {**now, **seen}
        rig.loop.advance(1_000)
    assert seen == {"p Pending": 0, "p Running": 2, "p Succeeded": 12, "q there": 0, "q gone": 15}


def test_a_node_that_no_agent_reports_of_is_assigned_nothing_and_is_not_ready_for_long(rig: Any) -> None:
    """A Node that somebody wrote by hand: nobody would run its pods."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "8"}}
    rig.write({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "paper"}, "status": ready})
    rig.write(pod("p", "paper"))
    assert subjects.assignment("paper") not in rig.bus._values
    rig.loop.advance(41_000)
    (condition,) = rig.get("Node", "paper", "").status["conditions"]
    assert condition["status"] == "Unknown" and "not been heard" in condition["message"]


def test_an_agent_that_registers_takes_up_the_pods_that_its_node_has_already(rig: Any) -> None:
    rig.write({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    rig.write(pod("p", "n1"))
    rig.node("n1")
    assert [orjson.loads(item)["metadata"]["name"] for item in assignment(rig, "n1").pods] == ["p"]
