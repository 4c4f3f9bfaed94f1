"""Helm installs the whole of Tidegate on a real node, which then places gangs and later replicas of its own.

The tests are one story, in this order.
"""

import base64
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_tools import DEFINITIONS, REGISTRATION, eventually
from control_plane import ControlPlane
from helm_tools import CHARTS, NAMESPACE, SERVICE_CHARTS, Helm, deep
from lab_image import PYTHON
from lab_programs import NoLab, programs
from lab_services import service_archives
from node_configuration import NODE
from policy_enforcer import enforced
from real_node import RealNode
from real_pods import JOBS, PODS, apply, is_ready, kill_container, log_of, phase, pods, ready, ring

pytestmark = pytest.mark.timeout(900)
JOB = "ring-allreduce"
MEMBERS = f"volcano.sh/job-name={JOB}"
OURS = f"/api/v1/namespaces/{NAMESPACE}/pods"
METRIC = f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}"
SMALL = {"resources": {"requests": {"cpu": "10m", "memory": "32Mi"}}}
DECIDING = ("gang-scheduler", "job-controller")
WAIT = ("--wait", "--timeout", "280s")


def values(node: RealNode) -> dict[str, Any]:
    """Little of everything: one node of few cores holds all of it, three servers of the bus with it, which speak TLS alone."""
    return {
        **{chart: {"replicas": 1, **SMALL} for chart in SERVICE_CHARTS if chart != "node-agent"},
        "global": {"nats": {"streamReplicas": 3, "tls": {"enabled": True}}},
        "nats": {"replicas": 3, "storage": {"ephemeral": True}, **SMALL},
        "gang-scheduler": {"replicas": 1, "settings": {"schedulerNames": "tidegate,volcano"}, **SMALL},
        "node-agent": {"settings": {"cgroupRoot": node.cgroup_root, "usageInterval": "5s"}, **SMALL},
    }


@pytest.fixture(scope="module")
def helm(node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    """Tidegate, installed; what a system beside the cluster had made before becomes the release's."""
    folder = tmp_path_factory.mktemp("release")
    try:
        programs("helm")
    except NoLab as error:
        pytest.skip(str(error))
    for archive in service_archives(folder):
        node.load(archive)
    made = Helm(folder, node.plane)
    try:
        made.install("tidegate", values(node), "--take-ownership", *WAIT)
        yield made
    finally:
        made.run("uninstall", "tidegate", "--namespace", NAMESPACE, "--ignore-not-found", *WAIT)


def ours(plane: ControlPlane, chart: str) -> list[Any]:
    found: list[Any] = plane.request("GET", f"{OURS}?labelSelector=app.kubernetes.io%2Fname%3D{chart}")["items"]
    return found


def uids(found: list[Any]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in found}


def rounds(plane: ControlPlane) -> int:
    """How many rounds the gang has computed so far."""
    return log_of(plane, f"{JOB}-master-0").count("sums are right")


def restarts(plane: ControlPlane) -> dict[str, int]:
    """How often containers of Tidegate were started again."""
    found = plane.request("GET", OURS)["items"]
    return {
        f"{pod['metadata']['name']}/{one['name']}": one["restartCount"]
        for pod in found
        for one in pod["status"].get("containerStatuses", ())
    }


def served_certificate(node: RealNode, address: str) -> str:
    """What the server of the bus there shows, in PEM; nothing where it gives up first: it lets nobody shake hands for long."""
    command = [*node.inside, sys.executable, "-c", _CERTIFICATE, address]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


# A server says what it is in clear, and goes on with TLS.
_CERTIFICATE = """
import socket, ssl, sys
with socket.create_connection((sys.argv[1], 4222), 10) as plain:
    assert plain.recv(1 << 16).startswith(b"INFO ")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(plain) as encrypted:
        print(ssl.DER_cert_to_PEM_cert(encrypted.getpeercert(True)))
"""


def a_pod(name: str, program: str = "import time; time.sleep(600)") -> dict[str, Any]:
    """One that Tidegate places."""
    container = {"name": "main", "image": PYTHON, "command": ["python", "-c", program]}
    spec = {"schedulerName": "tidegate", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def retries(plane: ControlPlane) -> int:
    """How often the job started anew."""
    return int(plane.request("GET", f"{JOBS}/{JOB}")["status"].get("retryCount", 0))


@pytest.mark.usefixtures("helm")
def test_the_whole_system_comes_up_inside_the_cluster(node: RealNode) -> None:
    found = node.plane.request("GET", OURS)["items"]

    by_chart = {pod["metadata"]["labels"]["app.kubernetes.io/name"]: pod for pod in found}
    assert by_chart.keys() >= {
        "nats",
        "cluster-gateway",
        "admission",
        "descheduler",
        "inference-autoscaler",
        "inference-gateway",
        "node-agent",
        *DECIDING,
        "queue-manager",
    }
    assert {pod["spec"]["schedulerName"] for pod in found} == {"default-scheduler"}
    assert node.plane.request("GET", f"{REGISTRATION}/validatingwebhookconfigurations/tidegate-admission")["webhooks"]


@pytest.mark.usefixtures("helm")
def test_its_node_agent_measures_from_inside_a_container(node: RealNode) -> None:
    (agent,) = ours(node.plane, "node-agent")

    def measured() -> bool:
        try:
            status = node.plane.request("GET", METRIC)["status"]
        except OSError:
            return False
        seen = {one["name"] for one in status["podsMetric"]}
        return (
            status["updateTime"] > agent["status"]["startTime"]
            and {"tidegate-nats-0", agent["metadata"]["name"]} <= seen
        )

    eventually(measured, 90)


def test_the_bus_takes_a_renewed_certificate_while_all_work_on(node: RealNode, helm: Helm) -> None:
    """Of another authority, as the documents say to get one: services read again whom to trust when they connect."""
    before = restarts(node.plane)
    secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/tidegate-nats-tls"
    service = node.plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/services/tidegate-nats")
    address = service["spec"]["clusterIP"]
    first = eventually(lambda: served_certificate(node, address))

    node.plane.request("DELETE", secret)
    helm.install("tidegate", values(node), *WAIT)

    data = node.plane.request("GET", secret)["data"]
    renewed = base64.b64decode(data["tls.crt"]).decode().strip()
    assert renewed != first
    # Kubelets look at Secrets about once a minute.
    for pod in ours(node.plane, "nats"):
        where = pod["status"]["podIP"]
        eventually(lambda where=where: served_certificate(node, where) == renewed, 180)
    assert restarts(node.plane) == before


@pytest.mark.usefixtures("helm")
def test_one_of_three_servers_of_the_bus_is_lost_and_new_pods_are_placed(node: RealNode) -> None:
    lost = f"{OURS}/tidegate-nats-1"
    uid = node.plane.request("GET", lost)["metadata"]["uid"]
    node.plane.request("DELETE", lost, {"gracePeriodSeconds": 0})

    apply(node.plane, a_pod("meanwhile"))
    ready(node.plane, "app=meanwhile", 1)

    eventually(lambda: [is_ready(pod) for pod in ours(node.plane, "nats")] == [True] * 3, 120)
    assert node.plane.request("GET", lost)["metadata"]["uid"] != uid
    node.plane.request("DELETE", f"{PODS}/meanwhile")


REACHED = {
    # Each service asks for names and is on the bus, and who has to asks the API server.
    *(f"{name}/egress/udp/53" for name in SERVICE_CHARTS),
    *(f"{name}/egress/tcp/4222" for name in SERVICE_CHARTS),
    *(f"{name}/egress/tcp/6443" for name in ("admission", "cluster-gateway")),
    # The bus is reached by them, and its servers by one another.
    *("nats/ingress/tcp/client", "nats/ingress/tcp/routes", "nats/egress/tcp/6222", "nats/egress/udp/53"),
}
NOT_ASKED_FOR = {
    # Long answers come over TCP; other API servers listen at 443; nobody reads metrics, uses Tidegate's API or asks a model here; and
    # the API server, which asks the webhooks, is the node itself.
    *(f"{name}/egress/tcp/53" for name in (*SERVICE_CHARTS, "nats")),
    *(f"{name}/egress/tcp/443" for name in ("admission", "cluster-gateway")),
    *(f"{name}/ingress/tcp/metrics" for name in SERVICE_CHARTS),
    *("admission/ingress/tcp/api", "admission/ingress/tcp/webhook"),
    *("inference-gateway/ingress/tcp/requests", "inference-gateway/egress/any"),
}


@pytest.mark.usefixtures("helm")
def test_network_policies_let_through_what_is_needed_and_no_more(node: RealNode) -> None:
    """All of Tidegate starts anew while they are in force, and then the servers of the bus once more, one by one: everybody
    connects again, of whom the policies know by then.
    """
    with enforced(node, NAMESPACE) as enforcer:
        start_anew(node.plane, ours_all(node.plane))
        for server in ours(node.plane, "nats"):
            start_anew(node.plane, [server])
        apply(node.plane, a_pod("under-policies"))
        ready(node.plane, "app=under-policies", 1)
        node.plane.request("DELETE", f"{PODS}/under-policies")
        enforcer.count()

        permitted = {
            rule.split("--comment ")[1].split()[0] for rule in enforcer.rules if "--comment blocked" not in rule
        }
        assert enforcer.hits.keys() <= permitted
        assert REACHED - enforcer.hits.keys() == set()
        assert permitted - enforcer.hits.keys() - NOT_ASKED_FOR == set()
        before = enforcer.blocked["blocked/nats/ingress"]
        bus = ours(node.plane, "nats")[0]["status"]["podIP"]
        apply(node.plane, a_pod("stranger", _REACHES.replace("ADDRESS", bus)))
        eventually(lambda: "timed out" in log_of(node.plane, "stranger"), 60)
        enforcer.count()
        assert enforcer.blocked["blocked/nats/ingress"] > before
        assert "reached" not in log_of(node.plane, "stranger")
        node.plane.request("DELETE", f"{PODS}/stranger")


_REACHES = """
import socket, time
try:
    socket.create_connection(("ADDRESS", 4222), 5)
    print("reached", flush=True)
except OSError as error:
    print(error, flush=True)
time.sleep(600)
"""


def start_anew(plane: ControlPlane, found: list[Any]) -> None:
    """End these pods; returns when all of Tidegate is ready again."""
    count = len(ours_all(plane))
    for pod in found:
        plane.request("DELETE", f"{OURS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 1})
    eventually(lambda: not uids(found) & uids(ours_all(plane)), 60)
    eventually(lambda: all(map(is_ready, now := ours_all(plane))) and len(now) == count, 180)


def ours_all(plane: ControlPlane) -> list[Any]:
    """The pods of the release that run for ever."""
    found = plane.request("GET", f"{OURS}?labelSelector=app.kubernetes.io%2Fpart-of%3Dtidegate")["items"]
    return [pod for pod in found if pod["spec"]["restartPolicy"] == "Always"]


@pytest.mark.usefixtures("helm")
def test_a_gang_of_which_one_is_killed_starts_anew(node: RealNode) -> None:
    apply(node.plane, *ring(rounds=240))
    first = ready(node.plane, MEMBERS, 4)

    kill_container(node, first[-1])

    eventually(lambda: not uids(first) & uids(pods(node.plane, MEMBERS)), 60)
    ready(node.plane, MEMBERS, 4)


def test_an_upgrade_whose_new_replicas_tidegate_places_itself_does_not_disturb_a_gang(
    node: RealNode, helm: Helm, tmp_path: Path
) -> None:
    gang = uids(ready(node.plane, MEMBERS, 4))
    helm.run("package", str(CHARTS / "tidegate"), "--version", "0.1.1", "--destination", str(tmp_path))
    more = {name: {"replicas": 2, "schedulerName": "tidegate"} for name in DECIDING}
    before = rounds(node.plane)

    helm.install(str(tmp_path / "tidegate-0.1.1.tgz"), deep(values(node), more), *WAIT)

    assert rounds(node.plane) > before
    assert "tidegate-0.1.1" in helm.run("list", "--namespace", NAMESPACE).stdout
    for name in DECIDING:
        # Those of before end in their grace time, beside the new ones.
        eventually(lambda name=name: len(ours(node.plane, name)) == 2, 60)
        placed = ours(node.plane, name)
        assert [pod["spec"]["schedulerName"] for pod in placed] == ["tidegate", "tidegate"]
        assert {pod["spec"]["nodeName"] for pod in placed} == {NODE}
    eventually(lambda: phase(node.plane, JOB) == "Completed", 180)
    assert uids(pods(node.plane, MEMBERS)) == gang
    assert retries(node.plane) == 1
    assert "checked: sum 6.0 over 4 ranks, 240 rounds" in log_of(node.plane, f"{JOB}-master-0")
    node.plane.request("DELETE", f"{JOBS}/{JOB}")
    eventually(lambda: not pods(node.plane, MEMBERS), 60)


def test_a_rollback_does_not_disturb_a_gang(node: RealNode, helm: Helm) -> None:
    apply(node.plane, *ring(rounds=2000))
    gang = uids(ready(node.plane, MEMBERS, 4))
    before = rounds(node.plane)

    helm.run("rollback", "tidegate", "1", "--namespace", NAMESPACE, *WAIT)

    assert rounds(node.plane) > before
    assert "tidegate-0.1.0" in helm.run("list", "--namespace", NAMESPACE).stdout
    for name in DECIDING:
        eventually(lambda name=name: len(ours(node.plane, name)) == 1, 60)
        assert [pod["spec"]["schedulerName"] for pod in ours(node.plane, name)] == ["default-scheduler"]
    assert uids(ready(node.plane, MEMBERS, 4)) == gang
    assert (phase(node.plane, JOB), retries(node.plane)) == ("Running", 0)


def test_what_users_run_goes_on_when_the_release_is_uninstalled(node: RealNode, helm: Helm) -> None:
    gang = uids(ready(node.plane, MEMBERS, 4))

    helm.run("uninstall", "tidegate", "--namespace", NAMESPACE, *WAIT)

    assert uids(ready(node.plane, MEMBERS, 4)) == gang
    assert phase(node.plane, JOB) == "Running"
    assert node.plane.request("GET", f"{DEFINITIONS}/jobs.batch.volcano.sh")["spec"]
    eventually(lambda: not node.plane.request("GET", OURS)["items"], 90)
    webhooks = node.plane.request("GET", f"{REGISTRATION}/validatingwebhookconfigurations")["items"]
    assert not [one for one in webhooks if one["metadata"]["name"].startswith("tidegate")]
    node.plane.request("DELETE", f"{JOBS}/{JOB}")
