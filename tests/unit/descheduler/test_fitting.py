"""Where a pod would be taken: never a node that the scheduler, by all its rules, would refuse."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from descheduler.domain.cluster.fitting import Fitting
from descheduler.domain.cluster.view import ClusterView
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.room.rearrangement import ranked
from kube import Event, Key, Manifest, Object, Store, from_manifest

QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
HOST, ZONE = "kubernetes.io/hostname", "zone"
APPS = ("a", "b")

SELECTOR = st.sampled_from([{"matchLabels": {"app": app}} for app in APPS] + [{}])
TERM = st.fixed_dictionaries({"labelSelector": SELECTOR, "topologyKey": st.sampled_from([HOST, ZONE])})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity_of(near: list[Any], apart: list[Any], disk: str) -> Manifest:
    found: Manifest = {}
    if near:
        found["podAffinity"] = {REQUIRED: near}
    if apart:
        found["podAntiAffinity"] = {REQUIRED: apart}
    if disk:
        expression = {"key": "disk", "operator": "In", "values": [disk]}
        found["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return found


SPREAD = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from([HOST, ZONE]),
        "maxSkew": st.integers(1, 2),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": SELECTOR,
    },
    optional={
        "minDomains": st.integers(1, 3),
        "nodeAffinityPolicy": st.sampled_from(["Ignore", "Honor"]),
        "nodeTaintsPolicy": st.sampled_from(["Ignore", "Honor"]),
    },
)
POD = st.fixed_dictionaries(
    {
        "app": st.sampled_from(APPS),
        "cpu": st.integers(0, 3),
        "node": st.integers(0, 3),
        "near": st.lists(TERM, max_size=1),
        "apart": st.lists(TERM, max_size=1),
        "spread": st.lists(SPREAD, max_size=2),
        "disk": st.sampled_from(["", "", "ssd"]),
        "tolerates": st.booleans(),
        "port": st.sampled_from([0, 0, 8080]),
    }
)
NODE = st.fixed_dictionaries(
    {
        "cpu": st.integers(2, 8),
        "pods": st.integers(2, 5),
        "zone": st.sampled_from(["z1", "z2", ""]),
        "disk": st.sampled_from(["ssd", "hdd"]),
        "tainted": st.sampled_from([False, False, True]),
        "closed": st.sampled_from([False, False, False, True]),
    }
)


def node_manifest(number: int, given: Any) -> Manifest:
    labels = {HOST: f"n{number}", "disk": given["disk"], **({ZONE: given["zone"]} if given["zone"] else {})}
    taints = [{"key": "kept", "value": "", "effect": "NoSchedule"}] if given["tainted"] else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": {"taints": taints, "unschedulable": given["closed"]},
        "status": {"allocatable": {"cpu": given["cpu"], "memory": "8Gi", "pods": given["pods"]}},
    }


def pod_manifest(name: str, given: Any, node: str) -> Manifest:
    container: Manifest = {"name": "c", "resources": {"requests": {"cpu": given["cpu"]}}}
    if given["port"]:
        container["ports"] = [{"containerPort": 80, "hostPort": given["port"]}]
    spec: Manifest = {
        "containers": [container],
        "schedulerName": "tidegate",
        "affinity": affinity_of(given["near"], given["apart"], given["disk"]),
        "topologySpreadConstraints": given["spread"],
        "tolerations": [{"key": "kept", "operator": "Exists"}] if given["tolerates"] else [],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": given["app"]}},
        "spec": {**spec, "nodeName": node} if node else spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def stored(manifests: list[Manifest]) -> list[Object]:
    return [from_manifest(manifest, uid=f"u{number}") for number, manifest in enumerate(manifests)]


def scheduler_takes(objects: list[Object], pod: Object) -> set[str]:
    """The nodes that the scheduler would take for a pod that waits."""
    core = SchedulerCore()
    core.fold([Event(None, item) for item in [*objects, pod]], 0)
    room, record = core.cluster.room, core.cluster.pods[pod.key]
    keys = ranked(room, record, 1)
    return {name for name, slot in room.table.slots.items() if keys[slot] >= 0}


@QUIET
@given(st.lists(NODE, min_size=2, max_size=4), st.lists(POD, min_size=1, max_size=6))
def test_a_node_that_would_take_a_pod_is_one_that_the_scheduler_takes(nodes: Any, pods: Any) -> None:
    """At both moments: for the reservation, while the pod is where it was, and for its successor, when it has gone."""
    hosts = [node_manifest(number, given) for number, given in enumerate(nodes)]
    there = [pod_manifest(f"p{number}", given, f"n{given['node'] % len(nodes)}") for number, given in enumerate(pods)]
    objects = stored([*hosts, *there])
    store, view = Store(), ClusterView()
    view.store = store
    for item in objects:
        event = store.put(item)
        if item.kind == "Pod":
            view.fold([event])
    moved = store.objects[Key("Pod", "default", "p0")]
    fitting = Fitting(view)
    ours = {
        node.name for node in view.nodes() if node.name != moved.spec["nodeName"] and not fitting.obstacle(moved, node)
    }
    waiting = from_manifest(pod_manifest("next", pods[0], ""), uid="next")
    during = scheduler_takes(objects, waiting)
    after = scheduler_takes([item for item in objects if item.key != moved.key], waiting)
    assert ours <= during, (ours, during)
    assert ours <= after, (ours, after)
