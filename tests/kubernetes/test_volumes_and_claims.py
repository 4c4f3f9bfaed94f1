"""Volumes, claims of devices, and pods of others: treated as kube-scheduler treats them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_tools import eventually, running_system
from control_plane import ControlPlane

MERGE = "application/merge-patch+json"
PODS, CLAIMS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES, CLASSES = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses"
DRA = "/apis/resource.k8s.io/v1"
DEVICE_CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
SELECTED = "volume.kubernetes.io/selected-node"
PROTECTION = "resource.kubernetes.io/delete-protection"


@pytest.fixture(scope="module", autouse=True)
def services(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services, for the tests of this file together."""
    with running_system(plane, tmp_path_factory.mktemp("volumes")) as folder:
        yield folder


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    container |= spec.pop("container", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"test": "volumes"}},
        "spec": {"schedulerName": "tidegate", "containers": [container], **spec},
    }


def get(plane: ControlPlane, path: str) -> Any:
    return plane.request("GET", path)


def node_of(plane: ControlPlane, name: str) -> str:
    return str(get(plane, f"{PODS}/{name}")["spec"].get("nodeName") or "")


def waits(plane: ControlPlane, name: str) -> str:
    """Why a pod waits, once it has been told."""
    conditions = get(plane, f"{PODS}/{name}").get("status", {}).get("conditions") or ()
    return next((str(one["message"]) for one in conditions if one["type"] == "PodScheduled"), "")


def on_node(name: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def volume(name: str, size: str, node: str, storage_class: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/mnt"},
            "nodeAffinity": on_node(node),
            **spec,
        },
    }


def claim(name: str, size: str, storage_class: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    }


def storage_class(name: str, provisioner: str, mode: str = "WaitForFirstConsumer") -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def with_claim(name: str) -> list[dict[str, Any]]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


@pytest.fixture(autouse=True)
def cleared(plane: ControlPlane) -> Iterator[None]:
    yield
    for item in get(plane, f"{PODS}?labelSelector=test%3Dvolumes")["items"]:
        plane.request("DELETE", f"{PODS}/{item['metadata']['name']}", {"gracePeriodSeconds": 0})


def test_a_volume_that_is_there_is_kept_for_the_claim_and_decides_where_its_first_pod_goes(plane: ControlPlane) -> None:
    plane.request("POST", CLASSES, storage_class("local", "kubernetes.io/no-provisioner"))
    plane.request("POST", VOLUMES, volume("small", "1Gi", "n005", "local"))
    plane.request("POST", VOLUMES, volume("large", "10Gi", "n006", "local"))
    plane.request("POST", CLAIMS, claim("static", "5Gi", "local"))
    plane.request("POST", PODS, pod("with-static", volumes=with_claim("static")))

    eventually(lambda: node_of(plane, "with-static") == "n006")

    bound, kept = get(plane, f"{CLAIMS}/static"), get(plane, f"{VOLUMES}/large")
    assert (bound["status"]["phase"], bound["spec"]["volumeName"]) == ("Bound", "large")
    assert kept["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert kept["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert SELECTED not in (bound["metadata"].get("annotations") or {})


def test_a_volume_is_made_where_the_pod_goes_and_the_pod_is_bound_after_it(plane: ControlPlane) -> None:
    """The test makes it, as a provisioner would."""
    plane.request("POST", CLASSES, storage_class("made", "example.com/disk"))
    plane.request("POST", CLAIMS, claim("dynamic", "5Gi", "made"))
    plane.request("POST", PODS, pod("with-dynamic", volumes=with_claim("dynamic")))

    def selected() -> Any:
        found = get(plane, f"{CLAIMS}/dynamic")
        return found if SELECTED in (found["metadata"].get("annotations") or {}) else None

    told = eventually(selected)
    node = told["metadata"]["annotations"][SELECTED]
    assert node_of(plane, "with-dynamic") == ""
    owner = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "dynamic", "uid": told["metadata"]["uid"]}
    plane.request("POST", VOLUMES, volume("fresh", "5Gi", node, "made", claimRef={**owner, "apiVersion": "v1"}))

    eventually(lambda: node_of(plane, "with-dynamic") == node)

    assert get(plane, f"{CLAIMS}/dynamic")["status"]["phase"] == "Bound"


def test_a_pod_goes_where_the_volume_is_that_its_claim_has_already(plane: ControlPlane) -> None:
    plane.request("POST", CLASSES, storage_class("at-once", "kubernetes.io/no-provisioner", "Immediate"))
    plane.request("POST", VOLUMES, volume("elsewhere", "5Gi", "n011", "at-once"))
    plane.request("POST", CLAIMS, claim("immediate", "5Gi", "at-once"))
    eventually(lambda: get(plane, f"{CLAIMS}/immediate")["status"].get("phase") == "Bound")

    plane.request("POST", PODS, pod("with-immediate", volumes=with_claim("immediate")))

    eventually(lambda: node_of(plane, "with-immediate") == "n011")


def _device_class(plane: ControlPlane) -> None:
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    plane.request(
        "POST",
        f"{DRA}/deviceclasses",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [selector]},
        },
    )
    pool = {"name": "n007", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(2)]
    spec = {"driver": "gpu.example.com", "nodeName": "n007", "pool": pool, "devices": devices}
    plane.request(
        "POST",
        f"{DRA}/resourceslices",
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n007"}, "spec": spec},
    )
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    plane.request(
        "POST",
        f"{DRA}/namespaces/default/resourceclaimtemplates",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    )


def _with_device(name: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
    return pod(
        name,
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        container={"resources": resources},
    )


def test_devices_are_allocated_to_claims_and_go_to_the_next_when_they_are_free(plane: ControlPlane) -> None:
    _device_class(plane)
    for name in ("d1", "d2", "d3"):
        plane.request("POST", PODS, _with_device(name))
        if name != "d3":
            eventually(lambda name=name: node_of(plane, name) == "n007")
    eventually(lambda: "device" in waits(plane, "d3"))

    claims = get(plane, DEVICE_CLAIMS)["items"]
    taken = {}
    for item in claims:
        if allocation := item.get("status", {}).get("allocation"):
            (result,) = allocation["devices"]["results"]
            (user,) = item["status"]["reservedFor"]
            taken[user["name"]] = result["device"]
            assert user["uid"] == get(plane, f"{PODS}/{user['name']}")["metadata"]["uid"]
            assert PROTECTION in item["metadata"]["finalizers"]
    assert taken.keys() == {"d1", "d2"} and set(taken.values()) == {"gpu-0", "gpu-1"}

    plane.request("DELETE", f"{PODS}/d1", {"gracePeriodSeconds": 0})

    eventually(lambda: node_of(plane, "d3") == "n007")
    eventually(lambda: len(get(plane, DEVICE_CLAIMS)["items"]) == 2)


def test_pods_of_others_take_room_whoever_put_them_on_their_node(plane: ControlPlane) -> None:
    """One of another scheduler, and one that a kubelet runs from a file and only shows."""
    shown = pod("static-pod", "15", nodeName="n008", schedulerName="default-scheduler")
    shown["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.source": "file"}
    plane.request("POST", PODS, shown)
    plane.request("POST", PODS, pod("theirs", "15", nodeName="n008", schedulerName="default-scheduler"))
    plane.request("POST", PODS, pod("ours", "4", nodeSelector={"kubernetes.io/hostname": "n008"}))

    eventually(lambda: "Insufficient cpu" in waits(plane, "ours"))
    assert node_of(plane, "ours") == ""
    plane.request("DELETE", f"{PODS}/theirs", {"gracePeriodSeconds": 0})

    eventually(lambda: node_of(plane, "ours") == "n008")


def test_a_pod_behind_a_gate_waits_for_the_gate(plane: ControlPlane) -> None:
    plane.request("POST", PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    plane.request("POST", PODS, pod("free"))

    eventually(lambda: node_of(plane, "free"))
    assert node_of(plane, "gated") == ""
    plane.request("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": None}}, MERGE)

    eventually(lambda: node_of(plane, "gated"))


def test_a_daemon_set_has_its_pod_on_each_of_its_nodes(plane: ControlPlane) -> None:
    nodes = ("n012", "n013", "n014")
    for name in nodes:
        plane.request("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": {"daemons": "yes"}}}, MERGE)
    template = pod("d", nodeSelector={"daemons": "yes"})
    spec = {
        "selector": {"matchLabels": {"test": "volumes"}},
        "template": {"metadata": {"labels": {"test": "volumes"}}, "spec": template["spec"]},
    }
    daemons = "/apis/apps/v1/namespaces/default/daemonsets"
    plane.request("POST", daemons, {"metadata": {"name": "d"}, "spec": spec})

    def places() -> list[str]:
        found = get(plane, f"{PODS}?labelSelector=test%3Dvolumes")["items"]
        return sorted(str(item["spec"].get("nodeName")) for item in found)

    eventually(lambda: places() == list(nodes))

    plane.request("DELETE", f"{daemons}/d", {"propagationPolicy": "Background"})
    eventually(lambda: places() == [])
