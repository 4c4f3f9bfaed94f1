"""Quota and a place in the topology are given together or not at all."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kube import Event, Key, from_manifest
from kube.pod_sets import Nearness, PodSetAsk
from queue_manager.domain.quotas.cluster_queue import Flavor
from queue_manager.domain.rooms.node_room import NodeRoom
from queue_manager.domain.rooms.topology_room import TopologyRoom
from queue_manager.domain.workloads.podset import PodSet, merged, podset_of, podsets_of_job

KUEUE = "kueue.x-k8s.io/v1beta2"
LABEL = "kueue.x-k8s.io/queue-name"
PODSET = "kueue.x-k8s.io/podset-"
ADMISSION = "tidegate.dev/admission"
RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
GROUP = "PodGroup.scheduling.volcano.sh"


def setting(cluster: Any, quota: int = 100, racks: tuple[tuple[int, ...], ...] = ((2, 1), (1, 1)), **spec: Any) -> None:
    """Racks ``r0`` … of nodes ``r0-0`` … with so many cpus, one flavor with a topology, one queue ``q``."""
    for number, cpus in enumerate(racks):
        for index, cpu in enumerate(cpus):
            node(cluster, f"r{number}-{index}", f"r{number}", cpu)
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    cluster.put({"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "dc"}, "spec": {"levels": levels}})
    flavor = {"nodeLabels": {"pool": "p"}, "topologyName": "dc"}
    cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": flavor})
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": quota}]}]
    content = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
        **spec,
    }
    cluster.put({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": content})
    local = {"name": "q", "namespace": "default"}
    cluster.put({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": "q"}})


def node(cluster: Any, name: str, rack: str, cpu: int, **spec: Any) -> None:
    labels = {RACK: rack, HOST: name, "pool": "p"}
    cluster.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec})
    cluster.status(Key("Node", "", name), {"allocatable": {"cpu": cpu, "pods": 110}})


def gang(
    cluster: Any,
    name: str,
    count: int,
    level: str = RACK,
    cpu: int = 1,
    asked: dict[str, str] | None = None,
    **spec: Any,
) -> None:
    """A PodGroup in the queue, and its pods, which have to be in one domain of ``level``; ``asked`` says more of that."""
    cluster.put(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default", "labels": {LABEL: "q"}},
            "spec": {"minMember": count},
        }
    )
    for index in range(count):
        annotations = {PODSET + "required-topology": level, "scheduling.k8s.io/group-name": name, **(asked or {})}
        metadata = {
            "name": f"{name}-{index}",
            "namespace": "default",
            "labels": {LABEL: "q"},
            "annotations": annotations,
        }
        content = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
        cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": content})


def is_in(cluster: Any, name: str) -> bool:
    return ADMISSION in cluster.read(GROUP, name).annotations


def test_a_grant_names_the_levels_of_the_topology(cluster: Any) -> None:
    setting(cluster)
    gang(cluster, "g", 2)
    cluster.settle()
    assert json.loads(cluster.read(GROUP, "g").annotations[ADMISSION])["topology"] == [RACK, HOST]


def test_who_finds_no_place_holds_no_quota_and_is_told_which_domain_is_nearest(cluster: Any) -> None:
    setting(cluster, quota=4)
    gang(cluster, "wide", 4)
    cluster.settle()
    assert not is_in(cluster, "wide")
    assert cluster.told("wide") == f"no {RACK} of flavor f has room for 4 pods: r0 has most, room for 3"
    gang(cluster, "slim", 3)
    cluster.settle()
    assert is_in(cluster, "slim")


def test_a_place_that_was_given_is_not_given_again_before_the_pods_have_it(cluster: Any) -> None:
    setting(cluster)
    gang(cluster, "a", 3)
    gang(cluster, "b", 3)
    cluster.settle()
    assert (is_in(cluster, "a"), is_in(cluster, "b")) == (True, False)
    for index, name in enumerate(("r0-0", "r0-0", "r0-1")):
        cluster.bind(f"a-{index}", name)
    cluster.settle()
    assert not is_in(cluster, "b")
    for index in range(3):
        cluster.remove("Pod", f"a-{index}")
    cluster.remove(GROUP, "a")
    cluster.settle()
    assert is_in(cluster, "b")


def test_a_place_is_kept_over_a_restart(cluster: Any) -> None:
    setting(cluster)
    gang(cluster, "a", 3)
    cluster.settle()
    cluster.restart()
    gang(cluster, "b", 3)
    cluster.settle()
    assert not is_in(cluster, "b")


def test_quota_alone_is_not_enough_and_neither_is_a_place(cluster: Any) -> None:
    setting(cluster, quota=2)
    gang(cluster, "g", 3)
    cluster.settle()
    assert "can have 2 at the most" in cluster.told("g")


def test_closed_and_tainted_nodes_are_no_room_until_they_open(cluster: Any) -> None:
    setting(cluster)
    node(cluster, "r0-0", "r0", 2, unschedulable=True)
    node(cluster, "r0-1", "r0", 1, taints=[{"key": "t", "effect": "NoSchedule"}])
    gang(cluster, "g", 3, tolerations=[{"key": "t", "operator": "Exists"}])
    cluster.settle()
    assert not is_in(cluster, "g")
    node(cluster, "r0-0", "r0", 2)
    cluster.settle()
    assert is_in(cluster, "g")


def test_a_level_that_the_topology_lacks_and_a_topology_that_is_missing_are_named(cluster: Any) -> None:
    setting(cluster)
    gang(cluster, "g", 1, level="example.com/row")
    cluster.settle()
    assert cluster.told("g") == "the topology dc of flavor f has no level example.com/row, which the pods ask for"
    cluster.remove("Topology.kueue.x-k8s.io", "dc", "")
    gang(cluster, "h", 1)
    cluster.settle()
    assert cluster.told("h") == "flavor f names the topology dc, which does not exist"


def test_pods_that_make_no_whole_slices_are_told_so_as_they_would_never_be_placed(cluster: Any) -> None:
    setting(cluster)
    sliced = {PODSET + "slice-required-topology": HOST, PODSET + "slice-size": "2"}
    gang(cluster, "g", 3, asked=sliced)
    gang(cluster, "h", 2, asked=sliced)
    cluster.settle()
    assert not is_in(cluster, "g")
    assert "its 3 pods do not make whole slices of 2" in cluster.told("g")
    assert is_in(cluster, "h")


def test_lent_resources_are_found_under_their_older_names() -> None:
    nodes = NodeRoom()
    labels = {RACK: "r0", HOST: "n"}
    node = from_manifest({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}})
    nodes.fold_node(Event(None, node.changed(status={"allocatable": {"kubernetes.io/batch-cpu": 1000}})))
    room = TopologyRoom(nodes, {"f": Flavor("f", topology="dc", levels=(RACK, HOST))})
    spec = {"containers": [{"name": "c", "resources": {"requests": {"koordinator.sh/batch-cpu": 600}}}]}
    for count, fits in ((1, True), (2, False)):
        podset = podset_of({PODSET + "required-topology": RACK}, spec, count)
        assert podset is not None
        assert (room.obstacle("f", [podset]) == "") is fits


def test_who_is_less_important_gives_way_in_the_one_rack_where_that_helps(cluster: Any) -> None:
    setting(cluster, preemption={"withinClusterQueue": "LowerPriority"})
    gang(cluster, "here", 1, nodeSelector={HOST: "r0-1"})
    gang(cluster, "there", 1, nodeSelector={HOST: "r1-1"})
    cluster.settle()
    for name, place in (("here-0", "r0-1"), ("there-0", "r1-1")):
        cluster.bind(name, place)
    gang(cluster, "high", 3, priority=10)
    cluster.settle()
    revoked = "tidegate.dev/revoked"
    assert revoked in cluster.read(GROUP, "here").annotations
    assert revoked not in cluster.read(GROUP, "there").annotations
    cluster.remove("Pod", "here-0")
    cluster.settle()
    assert is_in(cluster, "high")


def test_nobody_gives_way_in_vain(cluster: Any) -> None:
    setting(cluster, preemption={"withinClusterQueue": "LowerPriority"})
    gang(cluster, "low", 1)
    cluster.settle()
    cluster.bind("low-0", "r1-1")
    gang(cluster, "high", 4, priority=10)
    made = cluster.settle()
    assert [decision.name for decision in made if decision.name == "WorkloadRevoked"] == []


def test_the_pod_sets_of_a_job_are_read_from_its_templates() -> None:
    template = {
        "metadata": {"annotations": {PODSET + "preferred-topology": RACK}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}], "nodeSelector": {"a": "b"}},
    }
    limits = '[{"a":"b"},null,null]'
    wanted = PodSet(PodSetAsk(Nearness.PREFERRED, RACK), 3, (("cpu", 2000),), limits)

    def found(spec: Any) -> list[PodSet]:
        return [podset._replace(role="") for podset in merged(podsets_of_job(spec))]

    assert found({"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": template}}}) == [wanted]
    assert found({"tasks": [{"replicas": 3, "template": template}]}) == [wanted]
    assert found({"tasks": [{"replicas": 3, "template": template}] * 2}) == [wanted, wanted]
    assert found({"parallelism": 5, "completions": 3, "template": template}) == [wanted]
    inner = {"template": {"spec": {"parallelism": 3, "template": template}}}
    assert found({"replicatedJobs": [{"replicas": 2, **inner}]}) == [wanted._replace(pods=6)]
    assert found({"tasks": [{"replicas": 3, "template": {"spec": template["spec"]}}]}) == []


# --- against a plain search -------------------------------------------------------------------------------------------

RACKS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4)


def room_of(racks: list[list[int]]) -> TopologyRoom:
    nodes = NodeRoom()
    for number, cpus in enumerate(racks):
        for index, cpu in enumerate(cpus):
            name = f"r{number}-{index}"
            manifest = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {RACK: f"r{number}", HOST: name}},
            }
            status = {"allocatable": {"cpu": cpu, "pods": 110}}
            nodes.fold_node(Event(None, from_manifest(manifest).changed(status=status)))
    levels = (RACK, HOST)
    return TopologyRoom(nodes, {"f": Flavor("f", topology="dc", levels=levels)})


@settings(max_examples=200, deadline=None)
@given(
    RACKS,
    st.sampled_from(("required", "preferred")),
    st.sampled_from((RACK, HOST)),
    st.integers(1, 8),
    st.integers(1, 3),
)
def test_a_place_is_found_exactly_where_there_is_one_and_it_fits(
    racks: list[list[int]], nearness: str, level: str, count: int, cpu: int
) -> None:
    asked = {PODSET + f"{nearness}-topology": level}
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    podset = podset_of(asked, spec, count)
    assert podset is not None
    room = room_of(racks)
    found = room.spots("f", [podset])
    fits = [[free // cpu for free in cpus] for cpus in racks]
    largest = max(sum(rack) for rack in fits) if level == RACK else max(max(rack) for rack in fits)
    total = sum(map(sum, fits))
    assert isinstance(found, str) != ((largest if nearness == "required" else total) >= count)
    if isinstance(found, str):
        return
    [spot] = found
    assert int(spot.counts.sum()) == count
    names = [room.nodes.names[slot] for slot in spot.slots.tolist()]
    for name, pods in zip(names, spot.counts.tolist(), strict=True):
        number, index = map(int, name.removeprefix("r").split("-"))
        assert 0 < pods <= fits[number][index]
    used = {name.partition("-")[0] if level == RACK else name for name in names}
    assert len(used) == 1 or largest < count
