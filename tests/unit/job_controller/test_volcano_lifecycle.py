"""The phases of a Volcano Job, from the first look to its end."""

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]
Job = Callable[..., str]


def test_pods_are_made_only_after_the_group_was_let_in(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(let_in=False)
    cluster.apply(job())
    assert cluster.pods() == {}
    assert cluster.phase("Job/j") == "Pending"
    assert cluster.get("Job/j").status["state"]["reason"] == "NotLetIn"
    group = f"PodGroup/j-{cluster.get('Job/j').uid}"
    cluster.patch_status(group, {"phase": "Inqueue"})
    assert cluster.pods() == {"j-w-0": "Running", "j-w-1": "Running"}


def test_the_pods_of_a_gang_are_one_decision(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks="{name: w, replicas: 50}"))
    wanted = [decision for decision in cluster.decisions if decision.name == "PodsWanted"]
    assert len(wanted) == 1
    assert len([item for item in wanted[0].mutations if item.key.kind == "Pod"]) == 50


def test_the_group_names_the_minima_of_the_job_and_what_they_ask_for(cluster: Any, job: Job) -> None:
    cluster.apply(
        job(tasks="{name: a, replicas: 4, minAvailable: 1}; {name: b, replicas: 2}", minAvailable=3, queue="q")
    )
    spec = cluster.get(f"PodGroup/j-{cluster.get('Job/j').uid}").spec
    assert spec["minMember"] == 3
    assert spec["minTaskMember"] == {"a": 1, "b": 2}
    assert spec["minResources"] == {"cpu": "3"}
    assert spec["queue"] == "q"


def test_a_pod_carries_the_marks_of_its_job(cluster: Any, job: Job) -> None:
    cluster.apply(job())
    pod, uid = cluster.get("Pod/j-w-1"), cluster.get("Job/j").uid
    assert pod.labels["volcano.sh/job-name"] == "j"
    assert pod.labels["volcano.sh/task-spec"] == "w"
    assert pod.labels["volcano.sh/task-index"] == "1"
    assert pod.labels["volcano.sh/job-version"] == "0"
    assert pod.annotations["scheduling.k8s.io/group-name"] == f"j-{uid}"
    assert pod.controller is not None
    assert pod.controller["uid"] == uid


def test_pods_of_one_task_share_the_parts_that_are_equal(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks="{name: w, replicas: 3}", plugins="{svc: []}"))
    wanted = next(decision for decision in cluster.decisions if decision.name == "PodsWanted")
    specs = [item.manifest["spec"] for item in wanted.mutations if item.manifest and item.key.kind == "Pod"]
    assert all(spec["containers"] is specs[0]["containers"] for spec in specs)
    assert all(spec["volumes"] is specs[0]["volumes"] for spec in specs)


def test_a_job_ends_completed_with_enough_successes_and_failed_without(cluster: Any, job: Job) -> None:
    cluster.apply(job("good", minAvailable=1), job("bad"))
    cluster.pods_become(
        **{"good-w-0": "Succeeded", "good-w-1": "Failed", "bad-w-0": "Succeeded", "bad-w-1": {"phase": "Failed"}}
    )
    assert cluster.phase("Job/good") == "Completed"
    assert cluster.phase("Job/bad") == "Failed"
    assert "at least 2" in cluster.get("Job/bad").status["state"]["message"]


def test_the_status_counts_pods_by_task_and_phase(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks="{name: a, replicas: 2}; {name: b, replicas: 1}"))
    cluster.pods_become(**{"j-a-0": "Succeeded"})
    status = cluster.get("Job/j").status
    assert status["taskStatusCount"] == {
        "a": {"phase": {"Running": 1, "Succeeded": 1}},
        "b": {"phase": {"Running": 1}},
    }
    assert (status["running"], status["succeeded"], status["pending"]) == (2, 1, 0)
    assert [item["status"] for item in status["conditions"]] == ["Pending", "Running"]


def test_nothing_more_is_decided_when_nothing_changes(cluster: Any, job: Job) -> None:
    cluster.apply(job(plugins="{svc: [], ssh: [], env: []}"))
    before = len(cluster.decisions)
    cluster.restart()
    cluster.advance("24h")
    assert len(cluster.decisions) == before


def test_a_finished_job_is_deleted_after_its_time_to_live(cluster: Any, job: Job) -> None:
    cluster.apply(job(ttlSecondsAfterFinished=5))
    cluster.pods_become(**{"j-w-0": "Succeeded", "j-w-1": "Succeeded"})
    cluster.advance("4s")
    assert cluster.has("Job/j")
    cluster.restart()
    cluster.advance("1s")
    assert not cluster.has("Job/j")
    assert cluster.pods() == {}


def test_a_job_that_is_being_deleted_makes_nothing(cluster: Any, job: Job) -> None:
    cluster.apply(job())
    cluster.delete("Job/j")
    assert cluster.pods() == {}
    assert not [item for item in cluster.store.objects if item.name.startswith("j")]


def test_scaling_in_takes_the_highest_indexes_and_the_group_follows(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(termination="30s")
    cluster.apply(job(tasks="{name: w, replicas: 4, minAvailable: 2}", minAvailable=2))
    cluster.apply(job(tasks="{name: w, replicas: 2, minAvailable: 1}", minAvailable=1))
    assert cluster.pods() == {"j-w-0": "Running", "j-w-1": "Running", "j-w-2": "Running!", "j-w-3": "Running!"}
    spec = cluster.get(f"PodGroup/j-{cluster.get('Job/j').uid}").spec
    assert (spec["minMember"], spec["minTaskMember"], spec["minResources"]) == (1, {"w": 1}, {"cpu": "1"})
    cluster.advance("1m")
    assert cluster.pods() == {"j-w-0": "Running", "j-w-1": "Running"}
    assert cluster.get("Job/j").status["retryCount"] == 0


def test_a_job_waits_for_a_claim_that_it_only_names(cluster: Any, job: Job) -> None:
    cluster.apply(job(volumes="[{mountPath: /data, volumeClaimName: shared}]"))
    assert cluster.pods() == {}
    assert "shared" in cluster.get("Job/j").status["state"]["message"]
    cluster.apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shared}, spec: {}}")
    mounts = cluster.get("Pod/j-w-0").spec["containers"][0]["volumeMounts"]
    assert mounts == [{"name": "shared", "mountPath": "/data"}]


def test_a_claim_that_the_job_describes_is_made_once(cluster: Any, job: Job) -> None:
    cluster.apply(job(volumes="[{mountPath: /data, volumeClaim: {storageClassName: fast}}]"))
    claims = [key for key in cluster.store.objects if key.kind == "PersistentVolumeClaim"]
    assert len(claims) == 1
    assert cluster.get("Pod/j-w-1").spec["volumes"][0]["persistentVolumeClaim"] == {"claimName": claims[0].name}


def test_any_of_several_dependencies_is_enough_where_the_task_says_so(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(pod_start="manual")
    tasks = "{name: a, replicas: 1}; {name: b, replicas: 1}; {name: c, replicas: 1, minAvailable: 0, dependsOn: "
    for name, iteration, made in (("x", "any", True), ("y", "all", False)):
        cluster.apply(job(name, tasks=f"{tasks}{{name: [a, b], iteration: {iteration}}} }}", minAvailable=1))
        cluster.pods_become(**{f"{name}-b-0": {"phase": "Running", "ready": True}})
        assert cluster.has(f"Pod/{name}-c-0") is made


def test_a_gang_does_not_wait_for_pods_that_wait_for_the_gang(cluster: Any, job: Job) -> None:
    """A task that depends on another has no pods before that one runs, whatever its minimum says."""
    cluster.apply(job(tasks="{name: a, replicas: 2}; {name: b, replicas: 1, dependsOn: {name: [a]} }"))
    spec = cluster.get(f"PodGroup/j-{cluster.get('Job/j').uid}").spec
    assert (spec["minMember"], spec["minTaskMember"], spec["minResources"]) == (2, {"a": 2, "b": 0}, {"cpu": "2"})
    assert set(cluster.pods()) == {"j-a-0", "j-a-1", "j-b-0"}


def test_the_minimum_counts_the_most_important_tasks_and_the_overhead_of_runtime_classes(
    cluster: Any, job: Job
) -> None:
    """Of two tasks one pod has to start: the one whose class is higher, with what its runtime needs."""
    cluster.apply(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000",
        "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: vm}\noverhead: {podFixed: {cpu: 500m}}",
    )
    important = job(tasks="{name: a, replicas: 1}; {name: b, replicas: 1}", minAvailable=1)
    head, _, tail = important.rpartition("containers:")
    cluster.apply(f"{head}priorityClassName: high, runtimeClassName: vm, containers:{tail}")
    assert cluster.get(f"PodGroup/j-{cluster.get('Job/j').uid}").spec["minResources"] == {"cpu": "1500m"}
