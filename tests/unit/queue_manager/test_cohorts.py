"""ClusterQueues in the core: who is given quota, in which order, and what the others are told."""

import json
import time
from typing import Any

import pytest

from kube import Event, Key, Outcome, from_manifest, rfc3339
from queue_manager.domain import QueueCore, QueuePolicy

KUEUE = "kueue.x-k8s.io/v1beta2"
LABEL = "kueue.x-k8s.io/queue-name"
ADMISSION = "tidegate.dev/admission"


def flavor(cluster: Any, name: str = "f", **spec: Any) -> None:
    cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec})


def queue_manifest(name: str, quotas: dict[str, dict[str, int]], cohort: str = "", **spec: Any) -> dict[str, Any]:
    resources = sorted({resource for amounts in quotas.values() for resource in amounts})
    flavors = [
        {"name": each, "resources": [{"name": resource, "nominalQuota": amounts[resource]} for resource in resources]}
        for each, amounts in quotas.items()
    ]
    groups = [{"coveredResources": resources, "flavors": flavors}]
    content = {"namespaceSelector": {}, "resourceGroups": groups, "cohortName": cohort, **spec}
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": content}


def local_manifest(name: str, of: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": of or name}}


def queue(cluster: Any, name: str, cpu: int = 0, cohort: str = "", **spec: Any) -> None:
    """A ClusterQueue and a LocalQueue of its name."""
    cluster.put(queue_manifest(name, {"f": {"cpu": cpu}}, cohort, **spec))
    cluster.put(local_manifest(name))


def pod(cluster: Any, name: str, cpu: int, at: str, priority: int = 0, **spec: Any) -> None:
    cluster.put(pod_manifest(name, cpu, at, priority, **spec))


def pod_manifest(name: str, cpu: int, at: str, priority: int = 0, **spec: Any) -> dict[str, Any]:
    content = {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    metadata = {"name": name, "namespace": "default", "labels": {LABEL: at}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": content}


def admitted(cluster: Any) -> set[str]:
    pods = (item for key, item in cluster.store.objects.items() if key.kind == "Pod")
    return {item.name for item in pods if ADMISSION in item.annotations}


def told(cluster: Any, name: str) -> tuple[str, str]:
    """Reason and message of why a pod waits."""
    for condition in cluster.read("Pod", name).status.get("conditions") or ():
        if condition["type"] == "QuotaReserved" and condition["status"] == "False":
            return condition["reason"], condition["message"]
    return "", ""


def test_a_pod_is_given_quota_of_a_flavor_and_told_so_in_an_annotation(cluster: Any) -> None:
    flavor(cluster, nodeLabels={"pool": "p"}, tolerations=[{"key": "t", "operator": "Exists"}])
    queue(cluster, "q", 4)
    pod(cluster, "p", 3, "q")
    cluster.settle()
    assert json.loads(cluster.read("Pod", "p").annotations[ADMISSION]) == {
        "clusterQueue": "q",
        "flavors": {"cpu": "f"},
        "usage": {"cpu": 3000},
        "nodeSelector": {"pool": "p"},
        "tolerations": [{"key": "t", "operator": "Exists"}],
    }
    assert cluster.entitled["cohort/q"]["open"]


def test_quota_comes_back_when_a_pod_ends_or_goes(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 2)
    for name in ("a", "b", "c", "d"):
        pod(cluster, name, 1, "q")
    cluster.settle()
    assert admitted(cluster) == {"a", "b"}
    cluster.bind("a")
    cluster.phase("a", "Succeeded")
    cluster.settle()
    assert admitted(cluster) == {"a", "b", "c"}
    cluster.remove("Pod", "b")
    cluster.settle()
    assert "d" in admitted(cluster)


def test_who_waits_is_told_what_is_missing(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 2)
    pod(cluster, "a", 2, "q")
    pod(cluster, "b", 1, "q")
    pod(cluster, "large", 3, "q", tolerations=[{"operator": "Exists"}])
    pod(cluster, "lost", 1, "nowhere")
    cluster.settle()
    assert told(cluster, "b") == (
        "WaitingForQuota",
        "insufficient unused quota for cpu in flavor f: needs 1, ClusterQueue q may take 0, 1 more needed",
    )
    assert told(cluster, "large") == (
        "ExceedsMaxQuota",
        "insufficient quota for cpu in flavor f: needs 3, ClusterQueue q can have 2 at the most",
    )
    assert told(cluster, "lost") == ("Misconfigured", "LocalQueue default/nowhere does not exist")


def test_a_strict_queue_waits_for_its_head(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 4, queueingStrategy="StrictFIFO")
    pod(cluster, "a", 3, "q", 9)
    cluster.settle()
    pod(cluster, "b-head", 2, "q", 5)
    pod(cluster, "small", 1, "q")
    cluster.settle()
    assert admitted(cluster) == {"a"}
    assert told(cluster, "small") == ("BehindHeadOfQueue", "ClusterQueue q is strict and b-head is before it")
    cluster.remove("Pod", "b-head")
    cluster.settle()
    assert admitted(cluster) == {"a", "small"}


def test_a_head_that_can_never_have_quota_stops_a_strict_queue_and_no_other(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 4, queueingStrategy="StrictFIFO")
    queue(cluster, "easy", 4)
    for name in ("q", "easy"):
        pod(cluster, f"giant-{name}", 5, name, 8)
        pod(cluster, f"small-{name}", 1, name)
    cluster.settle()
    assert admitted(cluster) == {"small-easy"}
    assert told(cluster, "giant-q")[0] == "ExceedsMaxQuota"
    reason, message = told(cluster, "small-q")
    assert reason == "BehindHeadOfQueue"
    assert message.startswith(
        "ClusterQueue q is strict and giant-q is before it, which can never have quota as it is: insufficient quota"
    )
    queue(cluster, "q", 6, queueingStrategy="StrictFIFO")
    cluster.settle()
    assert admitted(cluster) == {"small-easy", "giant-q", "small-q"}


@pytest.mark.parametrize("strategy", ["BestEffortFIFO", "StrictFIFO"])
def test_a_head_that_is_set_aside_stops_nobody_and_keeps_its_place(cluster: Any, strategy: str) -> None:
    flavor(cluster)
    queue(cluster, "q", 4, queueingStrategy=strategy)
    cluster.settle()
    for name in ("first", "second", "third"):
        pod(cluster, name, 3, "q", 1 if name == "first" else 0)
        cluster.now += 1000
    head = Key("Pod", "default", "first")
    made = [one for one in cluster.core.decide(cluster.now, {head}) if one.subject.kind == "Pod"]
    assert [(one.name, one.subject.name) for one in made] == [("WorkloadAdmitted", "second"), ("WorkloadHeld", "third")]
    for number, decision in enumerate(made):
        cluster.core.assume(f"d{number}", decision)
        cluster.apply(decision)
        cluster.core.settle(Outcome(f"d{number}", decision.name, decision.subject, True))
    cluster.core.settle(Outcome("", "", head, True))
    cluster.remove("Pod", "second")
    cluster.settle()
    assert admitted(cluster) == {"first"}


def test_a_stopped_queue_gives_nothing_and_a_drained_one_takes_back(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 4)
    pod(cluster, "runs", 1, "q")
    pod(cluster, "waits-for-a-node", 1, "q")
    cluster.settle()
    cluster.bind("runs")
    queue(cluster, "q", 4, stopPolicy="HoldAndDrain")
    pod(cluster, "late", 1, "q")
    cluster.settle()
    assert (
        json.loads(cluster.read("Pod", "runs").annotations["tidegate.dev/revoked"])["reason"] == "ClusterQueueStopped"
    )
    assert admitted(cluster) == {"runs"}
    assert told(cluster, "late") == ("Suspended", "ClusterQueue q is stopped")


def test_a_group_is_given_quota_for_all_it_needs_and_then_let_in(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 7)
    for name, cpu in (("big", 8), ("fit", 6)):
        metadata = {"name": name, "namespace": "default", "labels": {LABEL: "q"}}
        spec = {"minMember": 2, "minResources": {"cpu": cpu}}
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}
        cluster.put(group)
    cluster.settle()
    assert cluster.group_status("fit")["phase"] == "Inqueue"
    assert cluster.group_status("big")["phase"] == "Pending"
    assert "cpu" in cluster.told("big")
    status = cluster.read("ClusterQueue.kueue.x-k8s.io", "q", "").status
    assert status["pendingWorkloads"] == 1
    assert status["admittedWorkloads"] == 1
    assert status["flavorsUsage"] == [{"name": "f", "resources": [{"name": "cpu", "total": "6", "borrowed": "0"}]}]


def test_a_restart_changes_nothing(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 2)
    for number in range(4):
        pod(cluster, f"p{number}", 1, "q")
    cluster.settle()
    cluster.restart()
    assert {decision.name for decision in cluster.settle()} <= {"EntitlementsComputed"}
    assert admitted(cluster) == {"p0", "p1"}


def test_a_refused_admission_holds_nothing(cluster: Any) -> None:
    flavor(cluster)
    queue(cluster, "q", 1)
    pod(cluster, "p", 1, "q")
    [decision] = [item for item in cluster.core.decide(cluster.now, set()) if item.name == "WorkloadAdmitted"]
    cluster.core.assume("d", decision)
    assert cluster.core.check() == []
    cluster.remove("Pod", "p")
    cluster.core.settle(Outcome("d", decision.name, decision.subject, False))
    pod(cluster, "next", 1, "q")
    cluster.settle()
    assert admitted(cluster) == {"next"}


def test_fifteen_thousand_workloads_of_thirty_queues_are_admitted_fast() -> None:
    """5 cohorts of 6 queues, as in Kueue's own load; what is admitted ends at once, so quota comes free again and again."""
    core = QueueCore(QueuePolicy(queueing="cohort"))
    objects = [{"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}}]
    names = [f"c{cohort}-q{number}" for cohort in range(5) for number in range(6)]
    for name in names:
        objects += [queue_manifest(name, {"f": {"cpu": 20}}, name[:2]), local_manifest(name)]
    kinds = [("small", 1, 50, 350), ("medium", 5, 100, 100), ("large", 20, 200, 50)]
    pods = [
        pod_manifest(f"{name}-{kind}-{number}", cpu, name, priority)
        for name in names
        for kind, cpu, priority, count in kinds
        for number in range(count)
    ]
    now = 1_767_225_600_000
    made = {}
    for number, manifest in enumerate([*objects, *pods]):
        item = from_manifest(manifest, uid=f"u{number}")
        made[item.key] = item.changed(metadata={**item.metadata, "creationTimestamp": rfc3339(now)})
    core.fold([Event(None, item) for item in made.values()], now)
    done, spent = 0, 0.0
    while True:
        start = time.process_time()
        decisions = core.decide(now, set())
        spent += time.process_time() - start
        granted = [decision.subject for decision in decisions if decision.name == "WorkloadAdmitted"]
        if not granted:
            break
        done += len(granted)
        start = time.process_time()
        core.fold([Event(made[key], None) for key in granted], now)
        spent += time.process_time() - start
    print(f"\n15,000 workloads: {done / spent:.0f}/s")
    assert done == len(pods)
    assert core.check() == []


def test_the_flavor_of_a_job_is_chosen_by_its_template_before_it_has_pods(cluster: Any) -> None:
    """The first flavor is tainted; only a job whose template tolerates that gets it."""
    flavor(cluster, "spot", nodeTaints=[{"key": "spot", "effect": "NoSchedule"}])
    flavor(cluster, "plain")
    cluster.put(queue_manifest("q", {"spot": {"cpu": 8}, "plain": {"cpu": 8}}))
    cluster.put(local_manifest("q"))
    tolerations = [{"key": "spot", "operator": "Exists"}]
    for name, spec in (("tough", {"tolerations": tolerations}), ("soft", {})):
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {LABEL: "q"}}
        template = {"spec": {"containers": [{"name": "c"}], **spec}}
        content = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}
        job = cluster.put(
            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": content}
        )
        owner = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "name": name,
            "uid": job.uid,
            "controller": True,
        }
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
        content = {"minMember": 2, "minResources": {"cpu": 4}}
        cluster.put({**group, "metadata": {**metadata, "ownerReferences": [owner]}, "spec": content})
    cluster.settle()
    annotations = {name: cluster.read("PodGroup.scheduling.volcano.sh", name).annotations for name in ("tough", "soft")}
    assert json.loads(annotations["tough"][ADMISSION])["flavors"] == {"cpu": "spot"}
    assert json.loads(annotations["soft"][ADMISSION])["flavors"] == {"cpu": "plain"}
