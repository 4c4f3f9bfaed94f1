"""Who waits at the gate is told why, where in the line, and how its queues stand."""

from typing import Any


def explain(cluster: Any, name: str) -> Any:
    return cluster.core.query("explain", {"kind": "PodGroup", "namespace": "default", "name": name})


def test_a_closed_queue_is_the_reason_and_opening_it_the_way_out(cluster: Any) -> None:
    cluster.queue("q", capability={"cpu": "4"})
    cluster.settle()
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "c", "namespace": "default"},
        "action": "CloseQueue",
        "target": {"kind": "Queue", "name": "q"},
    }
    cluster.put(command)
    cluster.settle()
    cluster.group("first", queue="q")
    cluster.group("second", queue="q")
    cluster.settle()
    answer = explain(cluster, "second")
    assert (answer["verdict"], answer["rule"]) == ("NotLetIn", "QueueClosed")
    assert (answer["position"], answer["waitingAtGate"], answer["ahead"]) == (2, 2, ["default/first"])
    assert answer["waysOut"] == ["open queue q (its administrator can), or move the work to an open one"]
    assert [(item["queue"], item["state"]) for item in answer["queues"]] == [("q", "Closed"), ("root", "Open")]
    assert answer["queues"][0]["capability"] == {"cpu": "4"}


def test_who_was_let_in_is_told_so(cluster: Any) -> None:
    cluster.group("g", queue="default")
    cluster.settle()
    assert explain(cluster, "g")["verdict"] == "LetIn"
    assert explain(cluster, "nobody")["verdict"] == "Unknown"


def test_what_can_never_be_let_in_is_told_that_waiting_does_not_help(cluster: Any) -> None:
    cluster.queue("q", capability={"cpu": "4"})
    cluster.group("g", queue="q", minResources={"cpu": "9"})
    cluster.settle()
    answer = explain(cluster, "g")
    assert (answer["rule"], answer["minimum"]) == ("NeverFits", {"cpu": "9"})
    assert "waiting does not help" in answer["waysOut"][0]


KUEUE = "kueue.x-k8s.io/v1beta2"


def cluster_queue(cluster: Any, name: str, cpu: int) -> None:
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    spec = {"namespaceSelector": {}, "cohortName": "pool"}
    spec["resourceGroups"] = [{"coveredResources": ["cpu"], "flavors": flavors}]
    cluster.put({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
    metadata = {"name": name, "namespace": "default"}
    cluster.put({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}})


def pod_in(cluster: Any, name: str, cpu: int, at: str) -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": at}}
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def test_who_waits_for_quota_sees_its_queue_the_cohort_above_and_who_holds_it(cluster: Any) -> None:
    cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}})
    cluster_queue(cluster, "a", 4)
    cluster_queue(cluster, "b", 2)
    pod_in(cluster, "large", 5, "a")
    cluster.settle()
    pod_in(cluster, "first", 3, "b")
    pod_in(cluster, "second", 2, "b")
    cluster.settle()
    answer = cluster.core.query("explain", {"kind": "Pod", "namespace": "default", "name": "second"})
    assert (answer["verdict"], answer["rule"], answer["queue"]) == ("NotLetIn", "WaitingForQuota", "cohort/b")
    assert (answer["position"], answer["waitingAtGate"], answer["ahead"]) == (2, 2, ["default/first"])
    assert [(level["kind"], level["name"]) for level in answer["quotaOf"]] == [
        ("ClusterQueue", "b"),
        ("Cohort", "pool"),
    ]
    quota = answer["quotaOf"][0]["quota"][0]
    assert (quota["flavor"], quota["quota"], quota["used"], quota["left"]) == ("f", "2", "0", "1")
    assert answer["holders"] == [{"workload": "default/large", "queue": "a", "used": {"cpu": "5"}}]
    assert "wait until work of the queue or its cohort ends" in answer["waysOut"][0]
    assert cluster.core.query("explain", {"kind": "Pod", "namespace": "default", "name": "large"})["verdict"] == "LetIn"


def test_the_last_pods_of_a_deleted_group_stay_in_their_queue(cluster: Any) -> None:
    """Their use moves to no other queue, whether the core saw the group or began after it was gone."""
    cluster.queue("q")
    cluster.group("g", queue="q")
    cluster.settle()
    annotations = {"scheduling.k8s.io/group-name": "g", "volcano.sh/queue-name": "q"}
    spec = {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}]}
    metadata = {"name": "p", "namespace": "default", "annotations": annotations}
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
    cluster.settle()
    cluster.remove("PodGroup.scheduling.volcano.sh", "g")
    cluster.settle()
    assert cluster.core.query("queue", {"name": "q"})["allocated"]["cpu"] == 2000
    assert not cluster.core.query("queue", {"name": "default"})["allocated"].get("cpu")


def test_shares_that_were_told_are_not_told_again_after_a_restart(cluster: Any, cluster_of: Any) -> None:
    cluster.queue("q", deserved={"cpu": "4"})
    told = [decision for decision in cluster.settle() if decision.name == "EntitlementsComputed"][-1]
    fresh = cluster_of()
    fresh.core.hear("queue_manager", told)
    fresh.queue("q", deserved={"cpu": "4"})
    for key, item in cluster.store.objects.items():
        if key.kind.startswith("Queue"):
            fresh._store(item)
    assert [decision.name for decision in fresh.settle()] == []
    fresh.queue("q", deserved={"cpu": "5"})
    again = [decision for decision in fresh.settle() if decision.name == "EntitlementsComputed"]
    assert len(again) == 1 and again[0].payload["version"] > told.payload["version"]


def test_a_job_that_waits_for_quota_is_told_why_and_one_in_no_queue_nothing(cluster: Any) -> None:
    cluster_queue(cluster, "a", 2)
    container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
    for name, labels in (("queued", {"kueue.x-k8s.io/queue-name": "a"}), ("plain", {})):
        spec = {"suspend": True, "parallelism": 1, "template": {"spec": {"containers": [container]}}}
        metadata = {"name": name, "namespace": "default", "labels": labels}
        cluster.put({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}})
    cluster.settle()
    asked = {"kind": "Job.batch", "namespace": "default", "name": "queued"}
    answer = cluster.core.query("explain", asked)
    assert (answer["verdict"], answer["queue"]) == ("NotLetIn", "cohort/a")
    assert "cpu" in answer["message"]
    assert cluster.core.query("explain", asked | {"name": "plain"}) == {}


def test_a_job_in_a_queue_that_is_not_there_is_told_to_make_it(cluster: Any) -> None:
    cluster_queue(cluster, "a", 2)
    metadata = {"name": "lost", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "nowhere"}}
    spec = {"suspend": True, "template": {"spec": {"containers": [{"name": "c"}]}}}
    cluster.put({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    cluster.settle()
    answer = cluster.core.query("explain", {"kind": "Job.batch", "namespace": "default", "name": "lost"})
    assert answer["waysOut"] == ["create LocalQueue nowhere in namespace default, or name one that is there"]


def test_a_pod_that_is_over_is_not_said_to_wait_for_quota(cluster: Any) -> None:
    cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}})
    cluster_queue(cluster, "a", 2)
    metadata = {"name": "p", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "a"}}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    cluster.put({**pod, "status": {"phase": "Succeeded"}})
    assert cluster.core.query("explain", {"kind": "Pod", "namespace": "default", "name": "p"}) == {}
