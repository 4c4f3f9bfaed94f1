"""TrainJobs with their runtimes, and JobSets."""

import copy
from typing import Any

import pytest

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def replicated(name: str, container: str = "node", step: str = "", **more: Any) -> dict[str, Any]:
    template: dict[str, Any] = {
        "spec": {"template": {"spec": {"containers": [{"name": container, "image": "busybox"}]}}}
    }
    if step:
        template["metadata"] = {"labels": {STEP: step}}
    return {"name": name, "template": template, **more}


def runtime(*jobs: dict[str, Any], **spec: Any) -> dict[str, Any]:
    body = {
        "mlPolicy": {"torch": {}},
        "template": {"spec": {"replicatedJobs": list(jobs) or [replicated("node", step="trainer")]}},
        **spec,
    }
    api = "trainer.kubeflow.org/v1alpha1"
    return {"apiVersion": api, "kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"}, "spec": body}


def train_job(**spec: Any) -> dict[str, Any]:
    body = {"runtimeRef": {"name": "torch"}, **spec}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "t"}, "spec": body}


def job_set(*jobs: dict[str, Any], **spec: Any) -> dict[str, Any]:
    body = {"replicatedJobs": list(jobs) or [replicated("main")], **spec}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}, "spec": body}


def test_a_train_job_is_of_a_runtime_of_the_cluster_and_runs_at_once(gate: Any) -> None:
    gate.apply(runtime())
    spec = gate.apply(train_job())["spec"]
    assert spec["runtimeRef"] == {"name": "torch", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
    assert (spec["suspend"], spec["managedBy"]) == (False, "trainer.kubeflow.org/trainjob-controller")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"runtimeRef": {"name": "nowhere"}}, "spec.runtimeRef.name"),
        ({"runtimeRef": {"name": "torch", "kind": "TrainingRuntime"}}, "spec.runtimeRef.name"),
        ({"runtimeRef": {"name": "torch", "kind": "Thing"}}, "spec.runtimeRef.kind"),
        ({"trainer": {"numNodes": 0}}, "spec.trainer.numNodes"),
        ({"trainer": {"numProcPerNode": "many"}}, "spec.trainer.numProcPerNode"),
        ({"trainer": {"resourcesPerNode": {"requests": {"cpu": "x"}}}}, "spec.trainer.resourcesPerNode.requests.cpu"),
        ({"trainer": {"env": [{"name": "PET_NNODES", "value": "1"}]}}, "spec.trainer.env[0].name"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"managedBy": "me"}, "spec.managedBy"),
    ],
)
def test_a_train_job_that_cannot_work_is_refused_by_field(gate: Any, spec: dict[str, Any], path: str) -> None:
    gate.apply(runtime())
    assert path in gate.wrong(train_job(**spec))


def test_only_the_variables_of_the_runtimes_framework_are_reserved(gate: Any) -> None:
    gate.apply(runtime(mlPolicy={"jax": {}}))
    assert not gate.wrong(train_job(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]}))
    assert gate.wrong(train_job(trainer={"env": [{"name": "JAX_PROCESS_ID", "value": "1"}]}))


def test_runtime_and_deadline_of_a_train_job_that_exists_stay(gate: Any) -> None:
    gate.apply(runtime())
    gate.apply(train_job(activeDeadlineSeconds=60))
    assert not gate.wrong(train_job(activeDeadlineSeconds=60, suspend=True, trainer={"numNodes": 3}))
    assert list(gate.wrong(train_job(activeDeadlineSeconds=61))) == ["spec.activeDeadlineSeconds"]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (runtime(mlPolicy={"torch": {}, "jax": {}}), "spec.mlPolicy"),
        (runtime(mlPolicy={"numNodes": 0}), "spec.mlPolicy.numNodes"),
        (runtime(podGroupPolicy={"volcano": {}, "coscheduling": {}}), "spec.podGroupPolicy"),
        (runtime(template={}), "spec.template.spec"),
        (runtime(replicated("n", step="trainer", replicas=2)), "spec.template.spec.replicatedJobs[0].replicas"),
        (
            runtime(replicated("n", "main", "trainer")),
            "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers",
        ),
        (
            runtime(replicated("n", step="cook")),
            f'spec.template.spec.replicatedJobs[0].template.metadata.labels["{STEP}"]',
        ),
    ],
)
def test_a_runtime_that_cannot_work_is_refused_by_field(gate: Any, wrong: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(wrong)


def test_a_job_set_that_says_nothing_gets_everything_it_needs(gate: Any) -> None:
    policy = {"rules": [{"action": "FailJobSet"}]}
    spec = gate.apply(job_set(failurePolicy=policy))["spec"]
    job = spec["replicatedJobs"][0]
    assert (job["replicas"], job["groupName"]) == (1, "default")
    batch = job["template"]["spec"]
    given = ("completionMode", "parallelism", "completions", "backoffLimit")
    assert [batch[name] for name in given] == ["Indexed", 1, 1, 6]
    assert batch["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert spec["successPolicy"] == {"operator": "All"}
    assert spec["failurePolicy"]["maxRestarts"] == 0
    assert spec["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (job_set(replicatedJobs=[]), "spec.replicatedJobs"),
        (job_set(replicated("a"), replicated("a")), "spec.replicatedJobs[1].name"),
        (job_set(replicated("a" * 60)), "spec.replicatedJobs[0].name"),
        (
            job_set(replicated("a", dependsOn=[{"name": "b", "status": "Ready"}]), replicated("b")),
            "spec.replicatedJobs[0].dependsOn[0].name",
        ),
        (
            job_set(replicated("a"), replicated("b", dependsOn=[{"name": "a", "status": "Done"}])),
            "spec.replicatedJobs[1].dependsOn[0].status",
        ),
        (job_set(successPolicy={"targetReplicatedJobs": ["x"]}), "spec.successPolicy.targetReplicatedJobs"),
        (job_set(failurePolicy={"rules": [{"action": "Shrug"}]}), "spec.failurePolicy.rules[0].action"),
        (job_set(failurePolicy={"maxRestarts": -1}), "spec.failurePolicy.maxRestarts"),
        (job_set(coordinator={"replicatedJob": "x"}), "spec.coordinator.replicatedJob"),
        (job_set(startupPolicy={"startupPolicyOrder": "Backwards"}), "spec.startupPolicy.startupPolicyOrder"),
    ],
)
def test_a_job_set_that_cannot_work_is_refused_by_field(gate: Any, wrong: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(wrong)


def test_the_jobs_of_a_set_may_change_only_while_it_is_suspended(gate: Any) -> None:
    other = copy.deepcopy(job_set(replicated("main", replicas=3)))
    gate.apply(job_set(suspend=True))
    assert not gate.wrong(other)
    gate.apply(job_set())
    assert list(gate.wrong(other)) == ["spec.replicatedJobs[0].replicas"]
