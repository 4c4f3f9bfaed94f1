"""What `tidegate check-cluster` says of a cluster that others manage."""

import json
from typing import Any

import pytest

from kube import from_manifest
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level
from tidegate_cli.check_cluster.report import data, findings, lines


def cluster(*manifests: dict[str, Any], **parts: Any) -> Cluster:
    made = Cluster(**parts)
    for manifest in manifests:
        made.store.put(from_manifest(manifest, uid=manifest["metadata"]["name"]))
    return made


def check(*manifests: dict[str, Any], names: str = "tidegate", **parts: Any) -> list[Finding]:
    return findings(cluster(*manifests, **parts), frozenset(names.split(",")))


def manifest(kind: str, version: str, name: str, namespace: str = "", **body: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


def deployment(name: str, image: str, replicas: int = 1) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    return manifest("Deployment", "apps/v1", name, "infra", spec={"replicas": replicas, "template": template})


def config_map(name: str, **entries: str) -> dict[str, Any]:
    return manifest(
        "ConfigMap", "v1", name, "infra", data={key.replace("_", "."): text for key, text in entries.items()}
    )


def texts(found: list[Finding], level: Level) -> str:
    return "\n".join(f"{one.subject}: {one.text} {one.advice}" for one in found if one.level is level)


def test_an_empty_cluster_has_nothing_to_tell() -> None:
    assert check() == []
    assert lines([])[0].startswith("Nothing would differ")


@pytest.mark.parametrize(
    ("image", "group"),
    [
        ("docker.io/volcanosh/vc-controller-manager:v1.13.0", "batch.volcano.sh"),
        ("registry.example:5000/kueue/kueue@sha256:1234", "kueue.x-k8s.io"),
        ("kubeflow/training-operator", "kubeflow.org"),
    ],
)
def test_a_controller_that_acts_on_the_same_objects_is_to_be_stopped_first(image: str, group: str) -> None:
    told = texts(check(deployment("peer", image)), Level.CONFLICT)

    assert group in told
    assert "kubectl -n infra scale deployment peer --replicas=0" in told


@pytest.mark.parametrize(
    ("image", "setting"),
    [("kserve/kserve-controller:v0.15.0", "inference_services"), ("ghcr.io/kedacore/keda:2.17.0", "scaled_objects")],
)
def test_objects_of_services_can_be_left_to_who_acts_on_them(image: str, setting: str) -> None:
    told = texts(check(deployment("peer", image)), Level.CONFLICT)

    assert f"--set inference_autoscaler.{setting}=false" in told


def test_a_controller_that_is_scaled_to_nothing_is_none() -> None:
    assert check(deployment("peer", "volcanosh/vc-controller-manager:v1", replicas=0)) == []


def test_a_scheduler_is_in_the_way_only_where_tidegate_takes_its_pods() -> None:
    scheduler = deployment("volcano-scheduler", "volcanosh/vc-scheduler:v1")

    assert "counts them as used room" in texts(check(scheduler), Level.NOTE)
    assert texts(check(scheduler), Level.CONFLICT) == ""
    assert "schedulerName volcano" in texts(check(scheduler, names="tidegate,volcano"), Level.CONFLICT)


def test_the_scheduler_of_the_control_plane_is_found_among_static_pods() -> None:
    pod = manifest(
        "Pod",
        "v1",
        "kube-scheduler-a",
        "kube-system",
        spec={"nodeName": "a", "containers": [{"name": "main", "image": "registry.k8s.io/kube-scheduler:v1.36.3"}]},
    )

    assert "default-scheduler" in texts(check(pod, names="tidegate,default-scheduler"), Level.CONFLICT)


def test_what_is_still_needed_beside_tidegate_is_said() -> None:
    other = deployment("other", "registry.k8s.io/descheduler/descheduler:v0.34.0")
    assert texts(check(other), Level.CONFLICT) == ""
    assert "stays" in texts(check(other), Level.NOTE)


def test_what_lends_and_holds_nodes_to_their_rules_is_there_once() -> None:
    """What Koordinator's own left behind counts as a user's, and would stay as it is."""
    manager = texts(check(deployment("manager", "koordinator-sh/koord-manager:v1.7.0")), Level.CONFLICT)

    assert "slo.koordinator.sh" in manager
    assert (
        "scale deployment manager --replicas=0, and delete what it leaves behind: kubectl delete nodeslos --all"
        in manager
    )

    template = {"spec": {"containers": [{"name": "main", "image": "koordinator-sh/koordlet:v1.7.0"}]}}
    agent = texts(
        check(manifest("DaemonSet", "apps/v1", "agent", "infra", spec={"template": template})), Level.CONFLICT
    )

    assert "holds best effort back on them, as Tidegate would" in agent
    assert "kubectl delete nodemetrics,devices --all; or leave them to it: --set node-agent.enforce=false" in agent


def test_webhooks_of_a_system_that_is_replaced_must_not_be_left() -> None:
    left = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "volcano-admission-service-jobs-validate"}}
    other = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "team-policies"}}

    told = texts(check(webhooks=[left, other]), Level.DIFFERS)

    assert "kubectl delete validatingwebhookconfiguration volcano-admission-service-jobs-validate" in told
    assert "team-policies" not in told


def test_volcano_without_preempt_and_reclaim_is_otherwise_here() -> None:
    conf = (
        'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: usage\n  - name: acme\n'
    )

    told = texts(check(config_map("volcano-scheduler-configmap", **{"volcano-scheduler_conf": conf})), Level.DIFFERS)

    assert "does not preempt" in told
    assert "does not take lent room back" in told
    assert "plugin usage" in told
    assert "plugin acme: nothing here answers to it" in told
    assert "plugin gang" not in told


@pytest.mark.parametrize("actions", ["preempt, reclaim", "gangpreempt,gangreclaim"])
def test_volcano_with_preempt_and_reclaim_is_the_same(actions: str) -> None:
    conf = f'actions: "enqueue, allocate, {actions}"\n'

    assert check(config_map("volcano-scheduler-configmap", **{"volcano-scheduler_conf": conf})) == []


def test_what_kueue_is_configured_with_is_handed_on_as_settings() -> None:
    configuration = (
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {}\n"
        "waitForPodsReady: {timeout: 5m}\nmanageJobsWithoutQueueName: true\n"
        "integrations: {frameworks: [batch/job, ray.io/rayjob]}\n"
    )

    told = texts(check(config_map("kueue-manager-config", controller_yaml=configuration)), Level.DIFFERS)

    assert "fair_sharing=true" in told
    assert """kueue='{"waitForPodsReady":{"timeout":"5m"}}'""" in told
    assert "integration ray.io/rayjob" in told
    assert "batch/job:" not in told


def test_arguments_of_load_aware_scheduling_are_handed_on_as_a_setting() -> None:
    arguments = {"apiVersion": "v1", "kind": "LoadAwareSchedulingArgs", "usageThresholds": {"cpu": 80}}
    plugins = [{"name": "LoadAwareScheduling", "args": arguments}]
    content = {"kind": "KubeSchedulerConfiguration", "profiles": [{"pluginConfig": plugins}]}

    told = texts(check(config_map("koord-scheduler-config", config_yaml=json.dumps(content))), Level.DIFFERS)

    assert """load_aware='{"usageThresholds":{"cpu":80}}'""" in told


def test_what_moves_pods_is_handed_on_as_settings() -> None:
    load = {"apiVersion": "v1", "kind": "LowNodeLoadArgs", "lowThresholds": {"cpu": 30}, "highThresholds": {"cpu": 65}}
    plugins = [
        {"name": "LowNodeLoad", "args": load},
        {"name": "MigrationController", "args": {"maxMigratingPerNode": 1}},
        {"name": "RemovePodsViolatingNodeTaints", "args": {}},
        {"name": "PodLifeTime", "args": {"maxAge": 1}},
        {"name": "OurOwn", "args": {}},
        {"name": "DefaultEvictor", "args": {"nodeFit": True}},
    ]
    content = {"kind": "DeschedulerConfiguration", "profiles": [{"pluginConfig": plugins}]}

    told = texts(check(config_map("koord-descheduler-config", config_yaml=json.dumps(content))), Level.DIFFERS)

    assert """low_node_load='{"lowThresholds":{"cpu":30},"highThresholds":{"cpu":65}}'""" in told
    assert """migration='{"maxMigratingPerNode":1}'""" in told
    assert "PodLifeTime knows no maxAge" in told and "OurOwn: the descheduler has no such plug-in" in told


def test_a_descheduler_that_carries_out_the_same_migrations_is_in_the_way() -> None:
    found = check(deployment("koord-descheduler", "koordinator-sh/koord-descheduler:v1"))
    assert "scheduling.koordinator.sh" in texts(found, Level.CONFLICT)


def test_a_config_map_that_is_no_yaml_is_passed_over() -> None:
    assert check(config_map("notes", text_yaml="a: b: c"), config_map("more", text_yaml="[1, 2]")) == []


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return manifest("Queue", "scheduling.volcano.sh/v1beta1", name, spec=spec)


def test_an_object_that_would_be_refused_is_to_settle_and_names_the_field() -> None:
    told = texts(check(queue("root"), queue("default"), queue("bad", parent="root", weight=-1)), Level.CONFLICT)

    assert "bad" in told
    assert "spec.weight" in told


def test_the_same_warning_of_many_objects_is_said_once() -> None:
    strange = [queue(f"q{number}", weight=1, colour="blue") for number in range(5)]

    found = [one for one in check(*strange) if "colour" in one.text]

    assert len(found) == 1
    assert len(found[0].objects) == 5
    assert "and 2 more" in "\n".join(lines(found))
    assert len(data(found)[0]["objects"]) == 5


def pytorch(name: str, **run_policy: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "torch", "command": ["train"]}]}}
    replicas = {"Worker": {"replicas": 2, "template": template}}
    spec = {"pytorchReplicaSpecs": replicas, "runPolicy": run_policy}
    return manifest("PyTorchJob", "kubeflow.org/v1", name, "team", spec=spec)


def test_a_kubeflow_job_that_starts_pod_by_pod_is_a_gang_here() -> None:
    loose, whole = pytorch("loose"), pytorch("whole", schedulingPolicy={"minAvailable": 2})

    told = texts(check(loose, whole), Level.DIFFERS)

    assert "team/loose" in told
    assert "whole:" not in told.replace("starts whole", "")


def test_a_kind_that_could_not_be_read_is_named() -> None:
    assert "may not list" in texts(check(unread={"Pod": "you may not list pods"}), Level.NOTE)


def test_pods_that_wait_are_counted_by_their_scheduler() -> None:
    pods = [
        manifest("Pod", "v1", f"p{number}", "team", spec={"schedulerName": "volcano", "containers": []})
        for number in range(3)
    ]

    assert "3 wait for a node now; they go on waiting" in texts(check(*pods), Level.NOTE)
    assert "Tidegate places them" in texts(check(*pods, names="volcano"), Level.NOTE)
