"""What an agent beside a kubelet says becomes a NodeMetric and a Device on the API server, and nothing else."""

import asyncio
from typing import Any

import orjson
import pytest

from apiserver import Answer, ApiRequest, Unreachable
from apiserver.reviews import TOKEN_REVIEWS
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.domain.node_objects import DEVICE, INVENTORY, METRIC
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.kubernetes.node_reports import NodeReports
from gang_scheduler.domain.devices.node_inventory import described, inventory_of
from kube import KINDS, Key, Manifest, Object, Store
from kube.node_evictions import EVICTIONS, asked
from tidegate.node.v1 import node_pb2

SERVED = {
    kind: Served(KINDS[kind], f"/apis/{KINDS[kind].api_version}", KINDS[kind].plural, True) for kind in (METRIC, DEVICE)
}
METRICS, DEVICES = (SERVED[kind].collection for kind in (METRIC, DEVICE))
INVENTORY_OF_TWO = {
    "numa": [{"cpus": "0-3", "memory": "1024", "gpus": [0]}, {"cpus": "4-7", "memory": "1024", "gpus": [1]}],
    "gpus": [
        {"index": index, "uuid": f"GPU-{index}", "model": "NVIDIA A100", "memory": str(80 << 30), "numa": index}
        for index in (0, 1)
    ],
    "nvlink": [[0, 1]],
}


def pod(name: str, uid: str, node: str, **annotations: str) -> Manifest:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "1", "annotations": annotations}
    return {"metadata": metadata, "spec": {"nodeName": node}}


class Server:
    """An API server that keeps what is written to it, by path, and tells the mirror of it when it is asked to."""

    def __init__(self) -> None:
        self.mirror = Mirror(Store())
        self.objects: dict[str, Manifest] = {}
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None
        self.away = False
        self.reports = NodeReports(self, self.mirror, SERVED)  # type: ignore[arg-type]
        self.knows("Node", {"metadata": {"name": "n1", "uid": "node-1", "resourceVersion": "1"}})
        for one in (
            pod("a", "uid-a", "n1"),
            pod("b", "uid-b", "n2"),
            pod("proxy", "uid-mirror", "n1", **{"kubernetes.io/config.hash": "hash"}),
        ):
            self.knows("Pod", one)

    def knows(self, kind: str, manifest: Manifest) -> None:
        self.mirror.begin(0, 1)
        self.mirror.seen(kind, manifest)
        self.mirror.take()

    def tells(self) -> None:
        for kind in (METRIC, DEVICE):
            stored = self.objects.get(f"{SERVED[kind].collection}/n1")
            if stored:
                self.knows(kind, stored)

    async def send(self, request: ApiRequest) -> Answer:
        self.asked.append(f"{request.method} {request.path}")
        if self.gate is not None:
            await self.gate.wait()
        if self.away:
            raise Unreachable("nobody answers")
        assert request.body is not None and request.parameters == {"fieldManager": "tidegate-node-agent"}
        path = request.path.removesuffix("/status")
        if request.method == "POST":
            path = f"{path}/{request.body['metadata']['name']}"
            if path in self.objects:
                return Answer(409, {"reason": "AlreadyExists", "message": "is there"})
            body = {**request.body, "status": {}}
            body["metadata"] = {**body["metadata"], "uid": "made", "resourceVersion": "10"}
            self.objects[path] = body
        elif path not in self.objects:
            return Answer(404, {"message": "not found"})
        else:
            there = self.objects[path]
            version = str(int(there["metadata"]["resourceVersion"]) + 1)
            metadata = {**there["metadata"], **request.body.get("metadata", {}), "resourceVersion": version}
            self.objects[path] = {**there, **request.body, "metadata": metadata}
        return Answer(200, self.objects[path])

    async def report(self, *uids: str, **parts: Any) -> str:
        samples = [
            {"uid": uid, "at": 1_700_000_000_000, "cpu_milli": 100 + n, "memory_bytes": 7} for n, uid in enumerate(uids)
        ]
        message = node_pb2.Report(node="n1", usage=orjson.dumps(samples) if uids else b"")
        if "devices" in parts:
            message.devices = orjson.dumps(parts.pop("devices"))
        message.MergeFrom(node_pb2.Report(**parts))
        return await self.reports.take(message, 0)


@pytest.fixture
def server() -> Server:
    return Server()


async def test_the_use_of_a_node_and_of_its_own_pods_is_told(server: Server) -> None:
    assert await server.report("", "uid-a", "uid-b", "hash", "nobody's") == ""

    metric = server.objects[f"{METRICS}/n1"]
    assert metric["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-1"}
    ]
    assert metric["status"]["updateTime"] == "2023-11-14T22:13:20Z"
    assert metric["status"]["nodeMetric"] == {"nodeUsage": {"resources": {"cpu": "100m", "memory": "7"}}}
    told = {one["name"]: one["podUsage"]["resources"]["cpu"] for one in metric["status"]["podsMetric"]}
    assert told == {"a": "101m", "proxy": "103m"}


async def test_what_is_told_again_is_one_request(server: Server) -> None:
    await server.report("")
    server.asked.clear()
    await server.report("")
    assert server.asked == [f"PATCH {METRICS}/n1/status"]


async def test_the_scheduler_sees_the_cards_of_a_device_as_it_sees_those_of_a_node_of_ours(server: Server) -> None:
    assert await server.report(devices=INVENTORY_OF_TWO) == ""
    server.tells()
    device = server.mirror.store.get(Key(DEVICE, "", "n1"))
    node = server.mirror.store.get(Key("Node", "", "n1"))
    assert device is not None and node is not None

    cards, layout, *_ = described(inventory_of(node, {DEVICE: device}))

    assert [(card.index, card.memory, card.cell, card.group) for card in cards] == [
        (0, 80 << 30, 0, 0),
        (1, 80 << 30, 1, 0),
    ]
    assert [one["id"] for one in device.spec["devices"]] == ["GPU-0", "GPU-1"]
    assert (device.spec["devices"][1]["minor"], device.spec["devices"][1]["topology"]["nodeID"]) == (1, 1)
    assert layout


async def test_devices_that_are_as_they_were_are_not_written_again(server: Server) -> None:
    await server.report(devices=INVENTORY_OF_TWO)
    server.tells()
    server.asked.clear()
    await server.report(devices=INVENTORY_OF_TWO)
    assert server.asked == []

    await server.report(devices={**INVENTORY_OF_TWO, "nvlink": []})
    assert server.asked == [f"PATCH {DEVICES}/n1"]
    assert '"nvlink":[]' in server.objects[f"{DEVICES}/n1"]["metadata"]["annotations"][INVENTORY]


async def test_a_node_without_devices_has_no_device(server: Server) -> None:
    assert await server.report(devices={"numa": [], "gpus": [], "nvlink": []}) == ""
    assert server.asked == []


async def test_objects_that_somebody_else_made_are_left_to_them(server: Server) -> None:
    for kind in (METRIC, DEVICE):
        server.knows(kind, {"metadata": {"name": "n1", "uid": "theirs", "resourceVersion": "1"}})
    assert await server.report("", "uid-a", devices=INVENTORY_OF_TWO) == ""
    assert server.asked == []


@pytest.mark.parametrize(
    "parts",
    [
        {"node_status": b"{}"},
        {"node_metadata": b"{}"},
        {"gone": ["uid-a"]},
        {"pods": [node_pb2.PodReport(uid="uid-a", namespace="default", name="a", status=b"{}")]},
    ],
)
async def test_an_agent_that_would_run_the_pods_is_told_that_a_kubelet_does(server: Server, parts: Any) -> None:
    assert "start the agent with --kubelet" in await server.report(**parts)
    assert server.asked == []


async def test_a_node_that_the_cluster_does_not_have_is_said_so(server: Server) -> None:
    assert "has no node 'n7'" in await server.reports.take(node_pb2.Report(node="n7", usage=b"[]"), 0)


async def test_a_server_that_does_not_answer_holds_up_one_report_of_a_node(server: Server) -> None:
    server.gate = asyncio.Event()
    first = asyncio.create_task(server.report(""))
    await asyncio.sleep(0)
    assert "is still on its way" in await server.report("")
    server.away = True
    server.gate.set()
    assert "nobody answers" in await first

    server.away = False
    assert await server.report("") == ""


async def test_a_kind_that_the_cluster_lacks_is_named(server: Server) -> None:
    reports = NodeReports(server, server.mirror, {})  # type: ignore[arg-type]
    message = node_pb2.Report(node="n1", usage=b'[{"uid":"","at":1,"cpu_milli":1,"memory_bytes":1}]')
    assert "no kind NodeMetric.slo.koordinator.sh" in await reports.take(message, 0)


# --- who an agent is ----------------------------------------------------------------------------------------------------

AGENTS = "system:serviceaccount:tidegate-system:tidegate-node-agent"


class Identified(Server):
    """A server that knows tokens, and a gateway that asks it whose they are."""

    def __init__(self) -> None:
        super().__init__()
        self.reports = NodeReports(self, self.mirror, SERVED, AGENTS)  # type: ignore[arg-type]
        self.users: dict[str, tuple[str, str]] = {"of n1": (AGENTS, "uid-a"), "of n2": (AGENTS, "uid-b")}
        self.audiences = ["tidegate"]

    async def send(self, request: ApiRequest) -> Answer:
        if request.path != TOKEN_REVIEWS:
            return await super().send(request)
        self.asked.append("review")
        if self.away:
            raise Unreachable("nobody answers")
        assert request.body is not None
        spec = request.body["spec"]
        if spec["token"] not in self.users or set(spec["audiences"]).isdisjoint(self.audiences):
            return Answer(201, {"status": {"authenticated": False, "error": "unknown"}})
        name, uid = self.users[spec["token"]]
        user = {"username": name, "extra": {"authentication.kubernetes.io/pod-uid": [uid]} if uid else {}}
        return Answer(201, {"status": {"authenticated": True, "user": user, "audiences": self.audiences}})


async def test_an_agent_is_believed_about_the_node_of_its_own_pod_and_about_no_other() -> None:
    server = Identified()
    assert await server.report("", token="of n1") == ""
    assert await server.report("", token="of n2") == "an agent on n2 speaks for no other node"
    assert server.objects[f"{METRICS}/n1"]["status"]


@pytest.mark.parametrize(
    ("token", "user", "why"),
    [
        ("", None, "the report has no token of its agent's pod"),
        ("made up", None, f"the token is none of a pod of {AGENTS}"),
        ("a user's", ("ada", ""), f"the token is none of a pod of {AGENTS}"),
        ("another account's", ("system:serviceaccount:default:default", "uid-a"), "the token is none of a pod of"),
        ("the account's, of no pod", (AGENTS, ""), f"the token is none of a pod of {AGENTS}"),
        ("of a pod not seen yet", (AGENTS, "uid-new"), "the pod of the agent is not known yet"),
    ],
)
async def test_who_cannot_show_where_its_pod_is_is_not_believed(
    token: str, user: tuple[str, str] | None, why: str
) -> None:
    server = Identified()
    if user is not None:
        server.users[token] = user
    assert (await server.report("", token=token)).startswith(why)
    assert server.objects == {}


async def test_a_token_that_was_made_for_the_api_server_is_not_taken() -> None:
    """Else whoever reads the bus could use it there, and pods' usual tokens would do here."""
    server = Identified()
    server.audiences = ["https://kubernetes.default.svc"]
    assert "is none of a pod" in await server.report("", token="of n1")


async def test_the_cluster_is_asked_about_a_token_once_in_a_while_and_a_failure_is_no_answer() -> None:
    server = Identified()
    server.away = True
    assert await server.report("", token="of n1") == "nobody answers"
    server.away = False
    for _ in range(3):
        assert await server.report("", token="of n1") == ""
    assert server.asked.count("review") == 2


@pytest.mark.parametrize("measured", [True, False])
async def test_the_pods_that_have_to_leave_stand_beside_the_use_until_nobody_has_to(
    server: Server, measured: bool
) -> None:
    if measured:
        await server.report("", "uid-a")
        server.tells()
    wish = {"uid": "uid-a", "namespace": "default", "name": "a", "reason": "MemoryEvict", "message": "full", "at": 5}
    foreign = {**wish, "uid": "nobody's"}

    assert await server.report(evictions=orjson.dumps([wish, foreign])) == ""

    told = Object(
        Key(METRIC, "", "n1"), "made", {"annotations": server.objects[f"{METRICS}/n1"]["metadata"]["annotations"]}
    )
    assert [one.uid for one in asked(told).pods] == ["uid-a"]
    server.tells()
    assert await server.report(evictions=b"[]") == ""
    assert server.objects[f"{METRICS}/n1"]["metadata"]["annotations"][EVICTIONS] is None


async def test_percentiles_and_programs_of_the_node_stand_beside_its_newest_use(server: Server) -> None:
    usages = [{"duration": "5m", "usage": {"p95": {"resources": {"cpu": "1"}}}}]
    more = {"nodeMetric": {"aggregatedNodeUsages": usages}, "hostApplicationMetric": [{"name": "db"}]}
    assert await server.report("", more_usage=orjson.dumps(more)) == ""
    status = server.objects[f"{METRICS}/n1"]["status"]
    assert status["nodeMetric"]["aggregatedNodeUsages"] == usages and "nodeUsage" in status["nodeMetric"]
    assert status["hostApplicationMetric"] == [{"name": "db"}]


async def test_containers_stand_with_their_pod(server: Server) -> None:
    assert await server.report("", "uid-a", "uid-a/main", "uid-a/side", "uid-b/foreign") == ""
    (told,) = server.objects[f"{METRICS}/n1"]["status"]["podsMetric"]
    used = {one["name"]: one["usage"]["resources"]["cpu"] for one in told["containers"]}
    assert (told["name"], used) == ("a", {"main": "102m", "side": "103m"})
