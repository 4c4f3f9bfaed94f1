"""Volcano Jobs: defaults, rules, and what of them may change."""

import copy
from typing import Any

import pytest

POD = {"spec": {"containers": [{"name": "c", "image": "busybox", "resources": {"limits": {"cpu": "1500m"}}}]}}


def task(name: str = "w", **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": 2, "template": copy.deepcopy(POD), **more}


def job(*tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    api = "batch.volcano.sh/v1alpha1"
    return {
        "apiVersion": api,
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": list(tasks) or [task()], **spec},
    }


def test_a_job_that_says_nothing_gets_everything_it_needs(gate: Any) -> None:
    bare = job({"template": copy.deepcopy(POD)}, {"replicas": 3, "template": copy.deepcopy(POD)})
    spec = gate.apply(bare)["spec"]
    assert [(one["name"], one["replicas"], one["minAvailable"], one["maxRetry"]) for one in spec["tasks"]] == [
        ("default0", 1, 1, 3),
        ("default1", 3, 3, 3),
    ]
    assert (spec["queue"], spec["minAvailable"], spec["maxRetry"]) == ("default", 4, 3)
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1500m"}}
    assert spec["tasks"][0]["template"]["spec"]["restartPolicy"] == "Always"


def test_the_minimum_of_a_task_follows_its_partitions(gate: Any) -> None:
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
    stored = gate.apply(job(task(replicas=4, partitionPolicy=policy)))
    assert stored["spec"]["tasks"][0]["minAvailable"] == 2
    assert stored["spec"]["minAvailable"] == 2


@pytest.mark.parametrize(
    ("given", "wanted"),
    [({"mpi": []}, ["mpi", "ssh", "svc"]), ({"pytorch": []}, ["pytorch", "svc"]), ({"env": None}, ["env"])],
)
def test_plugins_bring_along_what_they_build_on(gate: Any, given: dict[str, Any], wanted: list[str]) -> None:
    """A plugin with nothing behind its name is one without arguments."""
    assert sorted(gate.apply(job(task("master"), plugins=given))["spec"]["plugins"]) == wanted


def test_the_host_network_brings_its_name_service(gate: Any) -> None:
    hosted = job()
    hosted["spec"]["tasks"][0]["template"]["spec"]["hostNetwork"] = True
    assert gate.apply(hosted)["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (job(task(replicas=-1)), "spec.tasks[0].replicas"),
        (job(task(minAvailable=3)), "spec.tasks[0].minAvailable"),
        (job(minAvailable=3), "spec.minAvailable"),
        (job(minAvailable=-1), "spec.minAvailable"),
        (job(task(), task()), "spec.tasks[1].name"),
        (job(task("W")), "spec.tasks[0].name"),
        (job(task("w" * 63)), "spec.tasks[0].name"),
        (job(task(template={})), "spec.tasks[0].template.spec"),
        (job(task(topologyPolicy="restricted")), "spec.tasks[0].template.spec.containers[0].resources.requests.cpu"),
        (job(task(topologyPolicy="tight")), "spec.tasks[0].topologyPolicy"),
        (job(task(maxRetry=-2)), "spec.tasks[0].maxRetry"),
        (job(task(dependsOn={"name": ["w"]})), "spec.tasks[0].dependsOn"),
        (job(task(partitionPolicy={"totalPartitions": 2, "partitionSize": 2})), "spec.tasks[0].partitionPolicy.totalPartitions"),
        (job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished"),
        (job(minSuccess=0), "spec.minSuccess"),
        (job(runningEstimate="soon"), "spec.runningEstimate"),
        (job(plugins={"magic": []}), "spec.plugins.magic"),
        (job(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}), "spec.networkTopology.highestTierName"),
        (job(networkTopology={"mode": "firm"}), "spec.networkTopology.mode"),
        (job(volumes=[{"mountPath": "/a:b", "volumeClaimName": "v"}]), "spec.volumes[0].mountPath"),
        (job(volumes=[{"mountPath": "/a"}]), "spec.volumes[0]"),
        (job(tasks="none"), "spec.tasks"),
        (job(policies=[{"event": "PodFailed"}]), "spec.policies[0].action"),
        (job(policies=[{"event": "OutOfSync", "action": "RestartJob"}]), "spec.policies[0].event"),
        (job(policies=[{"exitCode": 0, "action": "RestartJob"}]), "spec.policies[0].exitCode"),
        (job(policies=[{"event": "PodPending", "action": "RestartJob", "timeout": "soon"}]), "spec.policies[0].timeout"),
        (
            job(policies=[{"event": "*", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}]),
            "spec.policies",
        ),
    ],
)  # fmt: skip
def test_a_job_that_cannot_work_is_refused_by_field(gate: Any, wrong: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(wrong)


def test_policies_of_a_task_and_of_its_job_may_name_the_same_event(gate: Any) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    assert not gate.wrong(job(task(policies=policies), policies=policies))


@pytest.mark.parametrize("words", [["--master=lead"], ["-master=lead"], ["--master", "lead"]])
def test_the_master_of_an_mpi_job_is_the_task_that_its_arguments_name(gate: Any, words: list[str]) -> None:
    assert not gate.wrong(job(task("lead"), task("worker"), plugins={"mpi": words}))


def test_an_unknown_field_is_kept_and_told(gate: Any) -> None:
    stored = gate.apply(job(task(colour="red"), shape="round", plugins={"svc": ["--no-such-flag"]}))
    assert stored["spec"]["shape"] == "round"
    assert [warning.partition(":")[0] for warning in gate.warnings] == [
        "spec.tasks[0].colour",
        "spec.shape",
        "spec.plugins.svc",
    ]


def test_a_missing_priority_class_is_told_and_does_not_keep_a_job_out(gate: Any) -> None:
    gate.apply(job(priorityClassName="urgent"))
    assert "urgent" in gate.warnings[0]


@pytest.mark.parametrize(
    "change",
    [
        {"minAvailable": 1},
        {"priorityClassName": "high"},
        {"tasks": [task(replicas=5)]},
        {"tasks": [task(minAvailable=1)]},
    ],
)
def test_the_numbers_of_a_job_that_exists_may_change(gate: Any, change: dict[str, Any]) -> None:
    gate.apply(job())
    assert not gate.wrong(job(**change))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"maxRetry": 5}, "spec.maxRetry"),
        ({"plugins": {"svc": []}}, "spec.plugins.svc"),
        ({"policies": [{"event": "PodFailed", "action": "AbortJob"}]}, "spec.policies"),
        ({"tasks": [task(), task("x")]}, "spec.tasks"),
        ({"tasks": [task("x")]}, "spec.tasks"),
        ({"tasks": [task(maxRetry=9)]}, "spec.tasks[0].maxRetry"),
    ],
)
def test_the_rest_of_a_job_that_exists_stays(gate: Any, change: dict[str, Any], path: str) -> None:
    gate.apply(job())
    wrong = gate.wrong(job(**change))
    if path == "spec.plugins.svc":
        path = "spec.plugins"
    assert list(wrong) == [path]
    assert "may not" in wrong[path]


def test_a_quantity_written_otherwise_is_no_change(gate: Any) -> None:
    gate.apply(job())
    same = job()
    same["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 1.5}}
    assert not gate.wrong(same)


def test_a_job_in_a_queue_that_was_closed_since_may_still_be_scaled(gate: Any) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    gate.apply(queue)
    gate.apply(job(queue="q"))
    gate.apply(queue, state="Closed")
    assert not gate.wrong(job(queue="q", minAvailable=1))
