"""Pods: defaults, priority, resources, what may change, and colocation."""

import copy
from typing import Any

import pytest

from kube import from_manifest

CONTAINER = {"name": "c", "image": "busybox"}


def pod(
    resources: dict[str, Any] | None = None, *, labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    container = {**CONTAINER, **({"resources": resources} if resources else {})}
    metadata = {"name": "p", "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def profile(name: str = "offline", **spec: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "x"}}, **spec}
    api = "config.koordinator.sh/v1alpha1"
    return {"apiVersion": api, "kind": "ClusterColocationProfile", "metadata": {"name": name}, "spec": spec}


def test_limits_fill_requests_and_pieces_fill_limits(gate: Any) -> None:
    given = {"requests": {"cpu": 1, "nvidia.com/gpu": 2}, "limits": {"cpu": 2, "memory": "1Gi"}}
    assert gate.apply(pod(given))["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": 1, "nvidia.com/gpu": 2, "memory": "1Gi"},
        "limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 2},
    }


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        ({"requests": {"cpu": 2}, "limits": {"cpu": 1}}, "requests.cpu"),
        ({"requests": {"nvidia.com/gpu": "500m"}}, 'requests["nvidia.com/gpu"]'),
        ({"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}, 'limits["nvidia.com/gpu"]'),
        ({"requests": {"koordinator.sh/gpu-core": "NaN"}}, 'requests["koordinator.sh/gpu-core"]'),
        ({"requests": {"memory": "-1Gi"}}, "requests.memory"),
    ],
)
def test_resources_that_no_node_can_give_are_refused_by_field(gate: Any, resources: dict[str, Any], path: str) -> None:
    assert f"spec.containers[0].resources.{path}" in gate.wrong(pod(resources))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"image": "busybox"}]}, "spec.containers[0].name"),
        ({"containers": [CONTAINER, CONTAINER]}, "spec.containers[1].name"),
        ({"initContainers": [CONTAINER]}, "spec.containers[0].name"),
        ({"initContainers": [{"name": "i", "restartPolicy": "Never"}]}, "spec.initContainers[0].restartPolicy"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"priorityClassName": "urgent"}, "spec.priorityClassName"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"tolerations": [{"operator": "Exists", "key": "k", "value": "v"}]}, "spec.tolerations[0].value"),
        ({"tolerations": [{"value": "v"}]}, "spec.tolerations[0].key"),
        ({"schedulingGates": [{"name": "a/b"}, {"name": "a/b"}]}, "spec.schedulingGates[1].name"),
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector"),
        ({"nodeSelector": {"disk": 5}}, "spec.nodeSelector.disk"),
        ({"containers": [{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}, "spec.containers[0].volumeMounts[0].name"),
        ({"containers": [{**CONTAINER, "ports": [{"containerPort": 0}]}]}, "spec.containers[0].ports[0].containerPort"),
        ({"containers": [{**CONTAINER, "env": [{"name": "A", "value": 1}]}]}, "spec.containers[0].env[0].value"),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}}},
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        ),
        ({"tolerations": [{"operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]}, "spec.tolerations[0].effect"),
        ({"nodeName": "n", "schedulingGates": [{"name": "a/b"}]}, "spec.nodeName"),
    ],
)  # fmt: skip
def test_a_pod_that_cannot_run_is_refused_by_field(gate: Any, spec: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(pod(**spec))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"minDomains": 0}, "minDomains"),
        ({"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}, "minDomains"),
        ({"nodeTaintsPolicy": "Maybe"}, "nodeTaintsPolicy"),
        ({"nodeAffinityPolicy": 3}, "nodeAffinityPolicy"),
        ({"matchLabelKeys": ["a"], "labelSelector": None}, "matchLabelKeys"),
        ({"matchLabelKeys": [["a"]]}, "matchLabelKeys[0]"),
        ({"topologyKey": "no key"}, "topologyKey"),
    ],
)
def test_a_spread_that_makes_no_sense_is_refused_by_field(gate: Any, changes: dict[str, Any], field: str) -> None:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    assert list(gate.wrong(pod(topologySpreadConstraints=[{**usual, **changes}]))) == [
        f"spec.topologySpreadConstraints[0].{field}"
    ]
    assert not gate.wrong(pod(topologySpreadConstraints=[usual]))
    assert list(gate.wrong(pod(topologySpreadConstraints=[usual, {**usual, "maxSkew": 2}]))) == [
        "spec.topologySpreadConstraints[1].topologyKey"
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"topologyKey": "no key"}, "topologyKey"),
        ({"namespaces": ["No_Name"]}, "namespaces[0]"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "namespaceSelector.matchExpressions[0].operator"),
        ({"matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}, "mismatchLabelKeys[0]"),
        ({"mismatchLabelKeys": ["a"], "labelSelector": None}, "mismatchLabelKeys"),
        ({"mismatchLabelKeys": 7}, "mismatchLabelKeys"),
    ],
)  # fmt: skip
def test_an_affinity_that_makes_no_sense_is_refused_by_field(gate: Any, changes: dict[str, Any], field: str) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"topologyKey": "zone", "labelSelector": {}, **changes}
    assert list(gate.wrong(pod(affinity={"podAffinity": {required: [term]}}))) == [
        f"spec.affinity.podAffinity.{required}[0].{field}"
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"key": "metadata.labels"}, "key"), ({"operator": "Exists"}, "operator"), ({"values": ["a", "b"]}, "values")],
)
def test_nodes_are_selected_by_one_name_at_a_time(gate: Any, changes: dict[str, Any], field: str) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"], **changes}]}
    wrong = gate.wrong(pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}}))
    assert list(wrong) == [f"spec.affinity.nodeAffinity.{required}.nodeSelectorTerms[0].matchFields[0].{field}"]


@pytest.mark.parametrize(
    ("limits", "wrong"),
    [
        ({"nvidia.com/gpu": 1, "koordinator.sh/gpu-core": 50}, "koordinator.sh/gpu-core"),
        ({"volcano.sh/vgpu-memory": 1024}, "volcano.sh/vgpu-memory"),
        ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1024}, None),
        (
            {"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory-ratio": 100},
            None,
        ),
        ({"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 1}, None),
    ],
)
def test_cards_are_asked_for_in_one_way(gate: Any, limits: dict[str, int], wrong: str | None) -> None:
    fields = [] if wrong is None else [f'spec.containers[0].resources.limits["{wrong}"]']
    assert list(gate.wrong(pod({"limits": limits}))) == fields


def test_a_container_may_not_ask_for_cards_in_another_way_than_the_one_before(gate: Any) -> None:
    manifest = pod({"limits": {"nvidia.com/gpu": 1}})
    other = {**CONTAINER, "name": "d", "resources": {"limits": {"volcano.sh/vgpu-number": 1}}}
    manifest["spec"]["containers"].append(other)

    assert list(gate.wrong(manifest)) == ['spec.containers[1].resources.limits["volcano.sh/vgpu-number"]']


def test_a_pod_as_a_whole_asks_for_what_its_containers_share(gate: Any) -> None:
    """At least what they request together, and no container may use more than the pod."""
    manifest = pod({"requests": {"cpu": 2}, "limits": {"cpu": 4}})

    def wrong(**whole: Any) -> list[str]:
        return list(gate.wrong({**manifest, "spec": {**manifest["spec"], "resources": whole}}))

    assert wrong(requests={"cpu": 2}, limits={"cpu": 4, "memory": "1Gi"}) == []
    few = ["spec.resources.requests.cpu", "spec.containers[0].resources.limits.cpu"]
    assert wrong(requests={"cpu": 1}, limits={"cpu": 3}) == few
    assert wrong(requests={"cpu": 5}, limits={"cpu": 4}) == ["spec.resources.requests.cpu"]
    assert wrong(requests={"nvidia.com/gpu": 1}) == ['spec.resources.requests["nvidia.com/gpu"]']


def test_what_a_binding_gives_is_not_for_users_to_write(gate: Any) -> None:
    """Else a pod would have cards and CPUs by its own word; what the system wrote stays as it is."""
    devices = "tidegate.dev/devices"
    forged = pod()
    forged["metadata"]["annotations"] = {devices: '{"nvidia.com/gpu":[0]}', "mine": "1"}
    manifest = gate.apply(forged)
    assert manifest["metadata"]["annotations"] == {"mine": "1"}
    held = copy.deepcopy(manifest)
    held["metadata"]["annotations"] = {devices: '{"nvidia.com/gpu":[3]}'}
    gate.store.put(from_manifest(held, uid="u"))
    assert gate.apply(forged)["metadata"]["annotations"][devices] == '{"nvidia.com/gpu":[3]}'


def test_a_pod_without_a_name_needs_the_beginning_of_one(gate: Any) -> None:
    nameless = pod()
    del nameless["metadata"]["name"]
    assert list(gate.wrong(nameless)) == ["metadata.name"]
    nameless["metadata"]["generateName"] = "worker-"
    assert not gate.wrong(nameless)
    nameless["metadata"]["generateName"] = "Worker-"
    assert list(gate.wrong(nameless)) == ["metadata.generateName"]


def test_a_namespace_that_is_being_deleted_takes_nothing_new(gate: Any) -> None:
    gate.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, phase="Terminating")
    assert list(gate.wrong(pod())) == ["metadata.namespace"]


def test_the_priority_of_a_pod_is_fixed_when_it_is_made(gate: Any) -> None:
    gate.apply(priority_class("high", 1000, preemptionPolicy="Never"))
    spec = gate.apply(pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    assert gate.apply(pod(priorityClassName="high"))["spec"]["priority"] == 1000
    assert gate.apply(pod())["spec"]["priorityClassName"] == "high", "left out, it stays"


def test_a_pod_that_names_no_class_has_the_default_of_all_and_its_own_number_wins(gate: Any) -> None:
    gate.apply(priority_class("usual", 7, globalDefault=True))
    assert gate.apply(pod())["spec"]["priority"] == 7
    own = pod(priority=5)
    own["metadata"]["name"] = "own"
    assert gate.apply(own)["spec"]["priority"] == 5


@pytest.mark.parametrize(
    ("name", "value"), [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
)
def test_the_classes_of_the_system_exist_without_being_made(gate: Any, name: str, value: int) -> None:
    assert gate.apply(pod(priorityClassName=name))["spec"]["priority"] == value


def test_a_priority_class_keeps_its_value_and_only_one_is_the_default(gate: Any) -> None:
    gate.apply(priority_class("a", 1, globalDefault=True))
    assert list(gate.wrong(priority_class("a", 2, globalDefault=True))) == ["value"]
    assert list(gate.wrong(priority_class("b", 2, globalDefault=True))) == ["globalDefault"]
    assert list(gate.wrong(priority_class("system-mine", 2))) == ["metadata.name"]
    assert list(gate.wrong(priority_class("c", 2_000_000_000))) == ["value"]


def test_gates_may_go_and_tolerations_may_come(gate: Any) -> None:
    gate.apply(pod(schedulingGates=[{"name": "a/b"}]))
    gate.apply(pod(tolerations=[{"key": "k", "operator": "Exists"}]))
    wrong = gate.wrong(pod(schedulingGates=[{"name": "a/b"}]))
    assert set(wrong) == {"spec.schedulingGates[0].name", "spec.tolerations"}


def test_what_a_bound_pod_asks_for_stays(gate: Any) -> None:
    gate.apply(pod({"requests": {"cpu": 1}}, nodeName="n1"))
    assert gate.apply(pod({"requests": {"cpu": "1000m"}}))["spec"]["nodeName"] == "n1"
    assert list(gate.wrong(pod({"requests": {"cpu": 2}}))) == ["spec.containers[0].resources.requests.cpu"]
    assert not gate.wrong(
        pod(
            {"requests": {"cpu": 1}},
            containers=[{**CONTAINER, "image": "alpine", "resources": {"requests": {"cpu": 1}}}],
        )
    )


@pytest.mark.parametrize(("value", "good"), [("1", True), ("50%", True), ("0", False), ("100%", False), ("x", False)])
def test_a_disruption_bound_is_a_number_or_a_percentage(gate: Any, value: str, good: bool) -> None:
    bounded = pod()
    bounded["metadata"]["annotations"] = {"volcano.sh/jdb-min-available": value}
    assert (not gate.wrong(bounded)) == good


@pytest.mark.parametrize("qos", ["LSE", "LSR", "LS", "BE", "SYSTEM"])
@pytest.mark.parametrize("band", ["prod", "mid", "batch", "free", "none"])
def test_quality_and_priority_go_together_as_the_matrix_says(gate: Any, qos: str, band: str) -> None:
    numbers = {"prod": 9500, "mid": 7500, "batch": 5500, "free": 3500, "none": 0}
    good = band == "prod" if qos in ("LSE", "LSR") else band in ("mid", "batch", "free") if qos == "BE" else True
    asked = pod({"requests": {"cpu": 1}}, labels={"koordinator.sh/qosClass": qos}, priority=numbers[band])
    assert (not gate.wrong(asked)) == good


def test_the_label_of_the_band_counts_more_than_the_number(gate: Any) -> None:
    labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority-class": "koord-batch"}
    assert not gate.wrong(pod(labels=labels, priority=9500))


def test_a_profile_translates_what_it_makes_a_batch_pod_and_the_same_manifest_again_is_no_change(gate: Any) -> None:
    gate.apply(priority_class("batch-work", 5500))
    gate.apply(profile(qosClass="BE", priorityClassName="batch-work"))
    plain = pod({"requests": {"cpu": "1500m"}, "limits": {"cpu": "1500m", "memory": "2Gi"}}, labels={"app": "x"})
    for _ in range(2):
        stored = gate.apply(copy.deepcopy(plain))
        lent = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "2Gi"}
        assert stored["spec"]["containers"][0]["resources"] == {"requests": lent, "limits": lent}
        assert stored["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE"


def test_a_class_that_its_user_named_may_not_be_left_out_later_and_one_of_a_profile_need_not_be_named(
    gate: Any,
) -> None:
    own = {"koordinator.sh/qosClass": "LS", "koordinator.sh/priority": "3"}
    gate.apply(pod(labels=own))
    assert list(gate.wrong(pod())) == [f'metadata.labels["{label}"]' for label in own]
    gate.apply(priority_class("batch-work", 5500))
    gate.apply(profile(qosClass="BE", priorityClassName="batch-work", koordinatorPriority=7))
    plain = pod(labels={"app": "x"})
    plain["metadata"]["name"] = "shaped"
    first, again = (gate.apply(copy.deepcopy(plain)) for _ in range(2))
    assert first["metadata"]["labels"] == again["metadata"]["labels"]
    assert again["metadata"]["labels"]["koordinator.sh/priority"] == "7"


def test_the_overhead_of_a_pod_on_lent_resources_is_lent_too(gate: Any) -> None:
    """Whether its user names it or it comes from its class, of which it is that in other names."""
    fixed = {"cpu": "250m", "memory": "1Gi"}
    vm = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "handler": "kata"}
    gate.apply({**vm, "overhead": {"podFixed": fixed}})
    gate.apply(priority_class("batch-work", 5500))
    gate.apply(profile(qosClass="BE", priorityClassName="batch-work"))
    lent = {"kubernetes.io/batch-cpu": "250", "kubernetes.io/batch-memory": "1Gi"}
    for more in ({}, {"overhead": fixed}):
        for _ in range(2):
            made = gate.apply(pod(labels={"app": "x"}, runtimeClassName="vm", **more))
            assert made["spec"]["overhead"] == lent


@pytest.mark.parametrize(("cpus", "good"), [(("500m", "1500m"), True), (("500m", "1"), False), (("1.0000001",), False)])
def test_the_containers_of_a_pinned_pod_ask_for_whole_cpus_together(
    gate: Any, cpus: tuple[str, ...], good: bool
) -> None:
    """The pod is given CPUs, and its containers share them."""
    containers = [
        {"name": f"c{at}", "image": "busybox", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}
        for at, cpu in enumerate(cpus)
    ]
    pinned = pod(labels={"koordinator.sh/qosClass": "LSR"}, priority=9500)
    pinned["spec"]["containers"] = containers
    if good:
        gate.apply(pinned)
    else:
        assert list(gate.wrong(pinned)) == ["spec.containers[0].resources.requests.cpu"]


def test_a_profile_may_leave_the_resources_as_they_are(gate: Any) -> None:
    gate.apply(priority_class("batch-work", 5500))
    keeping = profile(qosClass="BE", priorityClassName="batch-work")
    keeping["metadata"]["annotations"] = {"config.koordinator.sh/skip-update-resources": "true"}
    gate.apply(keeping)
    stored = gate.apply(pod({"requests": {"cpu": 1}}, labels={"app": "x"}))
    assert stored["spec"]["containers"][0]["resources"] == {"requests": {"cpu": 1}}


def test_a_profile_patches_containers_by_their_name(gate: Any) -> None:
    patch = {
        "spec": {
            "containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "busybox"}]
        }
    }
    gate.apply(profile(patch=patch))
    stored = gate.apply(pod(labels={"app": "x"}))
    assert [(c["name"], c.get("env")) for c in stored["spec"]["containers"]] == [
        ("c", [{"name": "A", "value": "1"}]),
        ("side", None),
    ]


def test_half_of_the_pods_are_drawn_and_always_the_same_ones(gate: Any) -> None:
    gate.apply(profile(probability="50%", labels={"drawn": "yes"}))
    drawn = []
    for index in range(200):
        one = pod(labels={"app": "x"})
        one["metadata"]["name"] = f"p-{index}"
        drawn.append("drawn" in gate.apply(one)["metadata"]["labels"])
    assert 70 < sum(drawn) < 130


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"probability": "101%"}, "spec.probability"),
        ({"qosClass": "BEST"}, "spec.qosClass"),
        ({"priorityClassName": "none"}, "spec.priorityClassName"),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            "spec.selector.matchExpressions[0].operator",
        ),
    ],
)
def test_a_profile_that_cannot_work_is_refused_by_field(gate: Any, spec: dict[str, Any], path: str) -> None:
    assert list(gate.wrong(profile(**spec))) == [path]
