"""What the short ways of writing objects and nodes stand for."""

import json

import pytest

from kube import Store, from_manifest
from testing.scenarios import ScenarioError
from testing.scenarios.nodes import change_patch, expand_nodes, hypernodes, parse_change
from testing.scenarios.samples import parse_metric, parse_usage
from testing.scenarios.shorthands import expand


def test_a_pod_shorthand_becomes_a_full_manifest() -> None:
    [given] = expand({"kind": "Pod", "metadata": {"name": "p"}, "requests": {"cpu": 1}, "priority": 5, "podGroup": "g"})
    assert given.manifest == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {
            "priority": 5,
            "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": 1}}}],
        },
    }


def test_count_repeats_an_object_and_numbers_every_string_of_it() -> None:
    pods = expand({"kind": "Pod", "metadata": {"name": "w-{i}"}, "labels": {"n": "{i}"}, "count": 3})
    assert [one.manifest["metadata"] for one in pods] == [
        {"name": f"w-{number}", "labels": {"n": str(number)}} for number in range(3)
    ]


def test_labels_of_the_shorthand_join_those_of_the_metadata() -> None:
    [given] = expand(
        {"kind": "Pod", "metadata": {"name": "p", "labels": {"a": "1"}}, "labels": {"b": "2"}, "qos": "LS"}
    )
    assert given.manifest["metadata"]["labels"] == {"a": "1", "b": "2", "koordinator.sh/qosClass": "LS"}


@pytest.mark.parametrize(
    ("queueing", "place", "name"),
    [
        ("", "annotations", "scheduling.volcano.sh/queue-name"),
        ("capacity", "annotations", "scheduling.volcano.sh/queue-name"),
        ("elastic-quota", "labels", "quota.scheduling.koordinator.sh/name"),
        ("cohort", "labels", "kueue.x-k8s.io/queue-name"),
    ],
)
def test_the_queue_of_a_pod_is_said_as_the_policy_reads_it(queueing: str, place: str, name: str) -> None:
    [given] = expand({"kind": "Pod", "metadata": {"name": "p"}, "queue": "q"}, queueing)
    assert given.manifest["metadata"][place] == {name: "q"}


def test_limits_fill_requests_and_extended_requests_fill_limits() -> None:
    short = {"requests": {"example.com/gpu": 2, "kubernetes.io/batch-cpu": 500}, "limits": {"cpu": 1}}
    [given] = expand({"kind": "Pod", "metadata": {"name": "p"}, **short})
    assert given.manifest["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": 1, "example.com/gpu": 2, "kubernetes.io/batch-cpu": 500},
        "limits": {"cpu": 1, "example.com/gpu": 2},
    }


def test_a_spec_stands_under_the_keys_of_the_shorthand() -> None:
    spec = {"hostNetwork": True, "containers": [{"name": "c", "image": "own"}]}
    [given] = expand({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "requests": {"cpu": 1}})
    container = {"name": "c", "image": "own", "resources": {"requests": {"cpu": 1}}}
    assert given.manifest["spec"] == {"hostNetwork": True, "containers": [container]}


def test_a_simulated_duration_becomes_an_annotation() -> None:
    [given] = expand({"kind": "Pod", "metadata": {"name": "p"}, "simulate": {"duration": "60s"}})
    assert given.manifest["metadata"]["annotations"] == {"simulate/duration": "60s"}


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("Job", "batch.volcano.sh/v1alpha1"),
        ("PodGroup", "scheduling.volcano.sh/v1beta1"),
        ("ElasticQuota", "scheduling.sigs.k8s.io/v1alpha1"),
        ("ClusterQueue", "kueue.x-k8s.io/v1beta2"),
        ("TrainJob", "trainer.kubeflow.org/v1alpha1"),
    ],
)
def test_an_api_version_that_is_left_out_follows_from_the_kind(kind: str, api_version: str) -> None:
    [given] = expand({"kind": kind, "metadata": {"name": "x"}})
    assert given.manifest["apiVersion"] == api_version


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"metadata": {"name": "x"}}, "kind"),
        ({"kind": "Pod", "metadata": {}}, "metadata"),
        ({"kind": "Sloop", "metadata": {"name": "x"}}, "Sloop"),
        ({"kind": "Pod", "metadata": {"name": "x"}, "request": {"cpu": 1}}, "'request'"),
        ({"kind": "Pod", "metadata": {"name": "x"}, "owner": "web"}, "owner: 'web'"),
        ({"kind": "Pod", "metadata": {"name": "x"}, "count": "two"}, "count: 'two'"),
    ],
)
def test_an_object_that_is_written_wrong_is_named(entry: dict[str, object], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        expand(entry)


def test_a_counted_node_is_ready_and_takes_110_pods() -> None:
    nodes = expand_nodes({"name": "n", "count": 2, "allocatable": {"cpu": 4}, "labels": {"pool": "a"}})
    assert [node.manifest["metadata"]["name"] for node in nodes] == ["n-0", "n-1"]
    first = nodes[0].manifest
    assert first["status"]["allocatable"] == first["status"]["capacity"] == {"pods": "110", "cpu": "4"}
    assert first["status"]["conditions"][0] == {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    assert first["metadata"]["labels"] == {"kubernetes.io/hostname": "n-0", "pool": "a"}


def test_a_nodes_topology_becomes_labels_an_inventory_and_hypernodes() -> None:
    topology = {"zone": "z1", "hypernode": ["leaf", "root"], "gpus": [{"index": 0, "memory": "80Gi"}]}
    nodes = expand_nodes({"name": "n", "count": 2, "allocatable": {"cpu": 4}, "topology": topology})
    metadata = nodes[0].manifest["metadata"]
    assert metadata["labels"]["topology.kubernetes.io/zone"] == "z1"
    assert json.loads(metadata["annotations"]["tidegate.dev/inventory"]) == {"gpus": [{"index": 0, "memory": "80Gi"}]}
    leaf, root = hypernodes(nodes, Store())
    assert (leaf["spec"]["tier"], root["spec"]["tier"]) == (1, 2)
    assert [one["selector"]["exactMatch"]["name"] for one in leaf["spec"]["members"]] == ["n-0", "n-1"]
    assert root["spec"]["members"] == [{"type": "HyperNode", "selector": {"exactMatch": {"name": "leaf"}}}]


def test_a_node_that_comes_later_joins_its_hypernode() -> None:
    store = Store()
    topology = {"rack": "r1"}
    first, second = (expand_nodes({"name": n, "allocatable": {"cpu": 1}, "topology": topology}) for n in "ab")
    store.put(from_manifest(hypernodes(first, store)[0], uid="u"))
    [grown] = hypernodes(second, store)
    assert [one["selector"]["exactMatch"]["name"] for one in grown["spec"]["members"]] == ["a", "b"]


def test_a_change_of_allocatable_takes_an_equal_capacity_along() -> None:
    [node] = expand_nodes({"name": "n", "allocatable": {"cpu": 4, "memory": "8Gi"}, "capacity": {"memory": "9Gi"}})
    change = parse_change("n", {"allocatable": {"cpu": 2, "memory": "4Gi"}})
    assert change_patch(change, from_manifest(node.manifest, uid="u")) == {
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi"}, "capacity": {"cpu": "2"}}
    }


def test_flags_and_taints_of_a_node_change_become_a_patch() -> None:
    change = parse_change("n", {"ready": False, "unschedulable": True, "taints": [], "labels": {"a": "b"}})
    patch = change_patch(change, None)
    assert patch["spec"] == {"unschedulable": True, "taints": []}
    assert patch["status"]["conditions"][0]["status"] == "False"
    assert patch["metadata"] == {"labels": {"a": "b"}}


def test_usage_that_is_left_out_is_the_sum_of_its_parts() -> None:
    parts = {"system": {"cpu": 1, "memory": "1G"}, "pods": {"web": {"cpu": "500m", "memory": "2G"}}}
    assert parse_usage(parts).total == {"cpu": 1500, "memory": 3_000_000_000}
    assert parse_usage({"cpu": 4, **parts}).total == {"cpu": 4000, "memory": 3_000_000_000}
    assert parse_usage(parts).pods == {("default", "web"): {"cpu": 500, "memory": 2_000_000_000}}


def test_what_a_node_uses_beyond_its_pods_is_the_systems_where_that_is_left_out() -> None:
    """Pods that are measured at more than the whole node leave the system idle; a system that is named stays as it is."""
    sample = parse_usage({"cpu": 20, "memory": "3G", "system": {"memory": "1G"}, "pods": {"web": {"cpu": 12}}})
    assert sample.system == {"cpu": 8000, "memory": 1_000_000_000}
    assert parse_usage({"cpu": 11, "pods": {"web": {"cpu": 12}}}).system == {"cpu": 0}


def test_a_service_sample_holds_each_of_its_metrics_and_null_withdraws_one() -> None:
    concurrency, rate = parse_metric({"service": "m", "concurrency": 12, "rps": 0.5})
    assert (concurrency.name, concurrency.value_nano) == ("concurrency", 12_000_000_000)
    assert (rate.name, rate.value_nano) == ("rps", 500_000_000)
    [withdrawn] = parse_metric({"pod": "web-0", "cpu": None})
    assert withdrawn.value_nano is None
    [external] = parse_metric({"external": "queue", "labels": {"a": "b"}, "value": 90})
    assert (external.name, external.labels, external.subject) == ("queue", {"a": "b"}, None)


@pytest.mark.parametrize(
    ("entry", "told"), [({"value": 1}, "one of"), ({"pod": "p"}, "no value"), ({"pod": "p", "value": 1}, "name")]
)
def test_a_sample_without_subject_value_or_name_is_an_error(entry: dict[str, object], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        parse_metric(entry)
