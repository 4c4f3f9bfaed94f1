"""Pods that come by kubectl or from Deployments, admitted by the webhooks of a real API server."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_tools import REGISTRATION, eventually, running_system
from control_plane import ControlPlane

pytestmark = pytest.mark.usefixtures("team")
TEAM = "/api/v1/namespaces/team"


def container(cpu: str = "1") -> dict[str, Any]:
    return {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}


def pod(name: str, namespace: str = "team", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container()], **spec}}


def deployment(name: str, labels: dict[str, str], replicas: int = 2) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name, **labels}}, "spec": {"containers": [container()]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "offline"},
    "spec": {
        "namespaceSelector": {"matchLabels": {"team": "yes"}},
        "selector": {"matchLabels": {"work": "offline"}},
        "qosClass": "BE",
        "labels": {"koordinator.sh/priority-class": "koord-batch"},
        "labelSuffixes": {"tier": "-offline"},
    },
}


def kubectl(plane: ControlPlane, *words: str, given: Any = None) -> "subprocess.CompletedProcess[str]":
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), *words]
    text = json.dumps(given) if given else None
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)


def applied(plane: ControlPlane, manifest: Any, *words: str) -> Any:
    done = kubectl(plane, "apply", "-f", "-", "-o", "json", *words, given=manifest)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def team(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All services, a namespace whose pods they place, and a profile for its offline work, known to the API server."""
    with running_system(plane, tmp_path_factory.mktemp("system")):
        yield from _team(plane)


def _team(plane: ControlPlane) -> Iterator[None]:
    labels = {"tidegate.dev/schedule": "true", "team": "yes"}
    applied(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}})
    applied(plane, PROFILE)
    path = f"{REGISTRATION}/mutatingwebhookconfigurations/tidegate-admission"
    eventually(lambda: "/pods/profiles" in json.dumps(plane.request("GET", path)))
    # The API server takes a moment to act by what it was told.
    eventually(
        lambda: applied(plane, pod("probe", labels={"work": "offline"}), "--dry-run=server")["metadata"]["labels"].get(
            "koordinator.sh/qosClass"
        )
    )
    yield
    plane.request("DELETE", TEAM)
    plane.request("DELETE", "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles")
    eventually(
        lambda: "team" not in {one["metadata"]["name"] for one in plane.request("GET", "/api/v1/namespaces")["items"]},
        60,
    )


def test_pods_are_shaped_and_placed_like_those_that_come_by_our_own_api(plane: ControlPlane) -> None:
    applied(plane, deployment("batch", {"work": "offline", "tier": "web"}))
    applied(plane, deployment("online", {}))

    def pods(app: str) -> list[Any]:
        return list(plane.request("GET", f"{TEAM}/pods?labelSelector=app%3D{app}")["items"])

    batch = eventually(lambda: found if len(found := pods("batch")) == 2 else None)
    assert {one["metadata"]["labels"]["koordinator.sh/qosClass"] for one in batch} == {"BE"}
    assert {one["metadata"]["labels"]["tier"] for one in batch} == {"web-offline"}
    requests = batch[0]["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"kubernetes.io/batch-cpu": "1k", "kubernetes.io/batch-memory": "1Gi"}
    eventually(lambda: [one["spec"].get("nodeName", "")[:1] for one in pods("online")] == ["n", "n"])
    assert {one["spec"]["schedulerName"] for one in pods("online")} == {"tidegate"}


def test_a_profile_for_some_of_the_pods_draws_each_of_a_deployment_by_itself(plane: ControlPlane) -> None:
    drawn = {"selector": {"matchLabels": {"work": "drawn"}}, "probability": "50%", "labels": {"drawn": "yes"}}
    applied(plane, {**PROFILE, "metadata": {"name": "half"}, "spec": drawn})
    probe = pod("probe", labels={"work": "drawn"})

    def chosen() -> bool:
        """Whether some of many names are drawn: the API server asks about such pods from now on."""
        names = [{**probe, "metadata": {**probe["metadata"], "name": f"probe{number}"}} for number in range(8)]
        dry = [applied(plane, one, "--dry-run=server")["metadata"]["labels"] for one in names]
        return any("drawn" in labels for labels in dry)

    eventually(chosen)
    applied(plane, deployment("some", {"work": "drawn"}, replicas=16))

    pods = eventually(
        lambda: (
            found
            if len(found := plane.request("GET", f"{TEAM}/pods?labelSelector=app%3Dsome")["items"]) == 16
            else None
        )
    )
    assert 0 < sum("drawn" in one["metadata"]["labels"] for one in pods) < 16


def test_what_cannot_be_touched_stays_as_it_is(plane: ControlPlane) -> None:
    plain = applied(plane, pod("plain", "default", {"work": "offline"}))
    named = applied(plane, pod("named", schedulerName="mine"))
    left = applied(plane, pod("left", labels={"tidegate.dev/schedule": "false"}))
    system_pod = applied(plane, pod("system", "kube-system", {"koordinator.sh/qosClass": "LSE"}))

    schedulers = [one["spec"]["schedulerName"] for one in (plain, named, left, system_pod)]
    assert schedulers == ["default-scheduler", "mine", "default-scheduler", "default-scheduler"]
    assert "koordinator.sh/qosClass" not in plain["metadata"]["labels"]
    kubectl(plane, "delete", "pod", "plain", "-n", "default", "--force")
    kubectl(plane, "delete", "pod", "system", "-n", "kube-system", "--force")


def test_a_pod_whose_class_does_not_fit_is_refused_with_the_rule(plane: ControlPlane) -> None:
    refused = kubectl(plane, "apply", "-f", "-", given=pod("wrong", labels={"koordinator.sh/qosClass": "LSE"}))

    assert refused.returncode != 0
    assert "do not go together" in refused.stderr


def test_pods_do_not_wait_for_a_webhook_that_is_down_and_our_kinds_do(plane: ControlPlane) -> None:
    path = f"{REGISTRATION}/mutatingwebhookconfigurations"
    told = plane.request("GET", f"{path}/tidegate-admission")
    nowhere = {"url": "https://127.0.0.1:1/none"}
    webhooks = [{**one, "name": f"down.{one['name']}", "clientConfig": nowhere} for one in told["webhooks"]]
    plane.request("POST", path, {**told, "metadata": {"name": "down"}, "webhooks": webhooks})
    try:
        queue = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "late"},
            "spec": {},
        }
        eventually(lambda: kubectl(plane, "apply", "-f", "-", given=queue).returncode)
        applied(plane, pod("goes", labels={"work": "offline"}))
    finally:
        plane.request("DELETE", f"{path}/down")
