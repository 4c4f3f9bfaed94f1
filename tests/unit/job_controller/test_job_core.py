"""The core: which jobs are looked at, and when."""

from collections.abc import Callable
from typing import Any

import pytest

from job_controller.domain.core import JobCore
from job_controller.domain.kubeflow.conditions import newest_state, status_words
from job_controller.domain.reconcile import Actions, View
from kube import Decision, Event, Key, Object, Outcome, Store, from_manifest

Make = Callable[..., Any]
Job = Callable[..., str]


class Recorder:
    """A kind of job that decides nothing but what it is told to, and remembers what it was told."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.seen: list[str] = []
        self.looks: list[int] = []
        self.answer = Actions()

    def observe(self, job: Object, event: Event, now: int) -> None:
        self.seen.append(f"{job.name} < {event.key.name}")

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        self.looks.append(now)
        return self.answer

    def forget(self, uid: str) -> None:
        self.seen.append(f"forget {uid}")


TOP, MIDDLE = "JobSet.jobset.x-k8s.io", "Job.batch"


def made(api: str, kind: str, name: str, owner: Object | None = None) -> Object:
    references = []
    if owner is not None:
        version = {"JobSet": "jobset.x-k8s.io/v1alpha2", "Job": "batch/v1"}[owner.kind.partition(".")[0]]
        short = owner.kind.partition(".")[0]
        references = [{"apiVersion": version, "kind": short, "name": owner.name, "uid": owner.uid, "controller": True}]
    metadata = {"name": name, "ownerReferences": references}
    return from_manifest({"apiVersion": api, "kind": kind, "metadata": metadata}, uid=f"uid-{name}")


def family() -> tuple[Object, Object, Object]:
    top = made("jobset.x-k8s.io/v1alpha2", "JobSet", "set")
    middle = made("batch/v1", "Job", "job", top)
    return top, middle, made("v1", "Pod", "pod", middle)


def test_an_event_of_a_pod_concerns_every_owner_above_it() -> None:
    kinds = Recorder(TOP), Recorder(MIDDLE)
    core = JobCore(kinds)
    top, middle, pod = family()
    core.fold([Event(None, top), Event(None, middle), Event(None, pod)], 1)
    core.decide(1, frozenset())
    assert [kind.looks for kind in kinds] == [[1], [1]]
    core.fold([Event(pod, pod.changed(status={"phase": "Running"}))], 2)
    core.decide(2, frozenset())
    assert [kind.looks for kind in kinds] == [[1, 2], [1, 2]]


def test_owned_objects_of_a_change_set_are_told_before_their_owners() -> None:
    kind = Recorder(MIDDLE)
    core = JobCore([kind])
    _, middle, pod = family()
    core.fold([Event(None, middle), Event(None, pod)], 1)
    assert kind.seen == ["job < pod", "job < job"]


def test_a_job_in_flight_is_left_alone_and_looked_at_afterwards() -> None:
    kind = Recorder(MIDDLE)
    core = JobCore([kind])
    _, middle, _ = family()
    core.fold([Event(None, middle)], 1)
    core.decide(1, frozenset({middle.key}))
    assert kind.looks == []
    core.settle(Outcome("d", "X", middle.key, True))
    core.decide(2, frozenset())
    assert kind.looks == [2]


def test_a_job_is_looked_at_again_at_the_time_that_it_asked_for() -> None:
    kind = Recorder(MIDDLE)
    kind.answer = Actions(wake_at=50)
    core = JobCore([kind])
    _, middle, _ = family()
    core.fold([Event(None, middle)], 1)
    core.decide(1, frozenset())
    assert core.deadline() == 50
    kind.answer = Actions()
    core.decide(49, frozenset())
    core.decide(50, frozenset())
    assert kind.looks == [1, 50]
    assert core.deadline() is None


def test_a_job_whose_decisions_are_refused_is_tried_less_and_less_often() -> None:
    kind = Recorder(MIDDLE)
    _, middle, _ = family()
    kind.answer = Actions((Decision("X", middle.key, middle.uid),))
    core = JobCore([kind])
    core.fold([Event(None, middle)], 0)
    now = 0
    for _ in range(10):
        while not core.decide(now, frozenset()):
            later = core.deadline()
            assert later is not None
            now = later
        core.settle(Outcome("d", "X", middle.key, False, {"": "quota exceeded"}))
    assert kind.looks[:3] == [0, 0, 0]
    assert kind.looks == sorted(set(kind.looks)) or kind.looks[3:] == sorted(set(kind.looks[3:]))
    assert core.query("explain", dict(zip(("kind", "namespace", "name"), middle.key, strict=True)))["refused"] == {
        "times": 10,
        "message": "quota exceeded",
    }


def refuse_pods(decision: Decision) -> str | None:
    return "the quota is used up" if decision.name == "PodsWanted" else None


def test_a_job_whose_pods_are_refused_over_and_over_says_so_and_is_terminated_at_last(cluster: Any, job: Job) -> None:
    cluster.refuse = refuse_pods
    cluster.apply(job())
    cluster.advance("1s")
    state = cluster.get("Job/j").status["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "DecisionRefused")
    assert state["message"] == "3 times in a row it was refused: the quota is used up"
    cluster.advance("1m")
    assert cluster.phase("Job/j") == "Pending" and cluster.said().count("PodsWanted") < 15
    cluster.advance("3m")
    state = cluster.get("Job/j").status["state"]
    assert (state["phase"], state["reason"]) == ("Terminated", "RetryLimitReached")
    assert "15 times in a row it was refused: the quota is used up" in state["message"]
    assert not cluster.store.of_kind("PodGroup.scheduling.volcano.sh")
    assert cluster.said().count("PodsWanted") == 15 and cluster.said().count("RefusalNoted") == 1
    cluster.advance("1h")
    assert cluster.said().count("PodsWanted") == 15


def test_a_job_whose_pods_are_let_through_after_all_forgets_the_refusals(cluster: Any, job: Job) -> None:
    cluster.refuse = refuse_pods
    cluster.apply(job())
    cluster.advance("1s")
    cluster.refuse = lambda decision: None
    cluster.advance("1m")
    assert cluster.phase("Job/j") == "Running"
    assert "reason" not in cluster.get("Job/j").status["state"]


def test_a_job_that_is_changed_is_tried_at_once_though_it_was_refused(cluster: Any, job: Job) -> None:
    cluster.refuse = refuse_pods
    cluster.apply(job())
    cluster.advance("60s")
    cluster.refuse = lambda decision: None
    cluster.apply(job(tasks="{name: w, replicas: 1}"))
    assert cluster.phase("Job/j") == "Running"


def blocked(cluster: Any) -> tuple[str, str]:
    conditions = cluster.get("PyTorchJob/t").status["conditions"]
    return next((one["status"], one["message"]) for one in conditions if one["type"] == "Blocked")


def test_a_training_job_is_tried_for_ever_but_seldom(cluster: Any) -> None:
    cluster.refuse = refuse_pods
    workers = "{replicas: 1, template: {spec: {containers: [{name: pytorch}]}}}"
    cluster.apply(f"{{kind: PyTorchJob, metadata: {{name: t}}, spec: {{pytorchReplicaSpecs: {{Worker: {workers}}}}}}}")
    cluster.advance("10m")
    assert 15 < cluster.said().count("PodsWanted") < 30
    assert blocked(cluster) == ("True", "3 times in a row it was refused: the quota is used up")
    cluster.refuse = lambda decision: None
    cluster.advance("1m")
    assert blocked(cluster)[0] == "False" and cluster.pods() == {"t-worker-0": "Running"}


def test_a_core_that_reads_the_fold_of_the_facts_keeps_no_copy_and_puts_nothing_in(cluster: Any, job: Job) -> None:
    """It decides what one with a store of its own decides."""
    cluster.apply(job())
    fold, reader, owner = Store(), JobCore(), JobCore()
    reader.read_from(fold)
    for events, now in cluster.log:
        for event in events:
            fold.remove(event.key) if event.new is None else fold.put(event.new)
        before = dict(fold.objects)
        reader.fold(events, now)
        owner.fold(events, now)
        assert dict(fold.objects) == before and reader.store is fold
        assert reader.decide(now, frozenset()) == owner.decide(now, frozenset())


TORCH = """
kind: PyTorchJob
metadata: {name: j}
spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch}]}}}}}
"""


@pytest.mark.parametrize(("ref", "pod"), [("Job/j", "j-w-0"), ("PyTorchJob/j", "j-worker-0")])
def test_a_job_that_is_made_again_waits_for_the_pods_of_the_one_before(
    make_cluster: Make, job: Job, ref: str, pod: str
) -> None:
    cluster = make_cluster(termination="30s")
    text = job() if ref == "Job/j" else TORCH
    cluster.apply(text)
    cluster.delete(ref)
    cluster.apply(text)
    assert cluster.pods()[pod] == "Running!"
    key = cluster.key(ref)
    answer = cluster.core.query("explain", dict(zip(("kind", "namespace", "name"), key, strict=True)))
    assert f"Pod {pod} is still being deleted" in answer["waits"][0]
    cluster.advance("30s")
    assert list(cluster.pods().values()) == ["Running", "Running"]
    assert "waits" not in cluster.core.query("explain", dict(zip(("kind", "namespace", "name"), key, strict=True)))


def test_a_job_whose_name_for_a_pod_is_taken_says_whose_pod_it_is(cluster: Any, job: Job) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j-w-1"}, "spec": {}})
    cluster.apply(job())
    state = cluster.get("Job/j").status["state"]
    assert state["reason"] == "NameTaken"
    assert state["message"].startswith("Pod j-w-1 is there already and belongs to nobody; delete it")
    assert list(cluster.pods()) == ["j-w-1"] and cluster.said().count("RefusalNoted") == 1
    cluster.delete("Pod/j-w-1")
    assert cluster.phase("Job/j") == "Running" and "reason" not in cluster.get("Job/j").status["state"]


@pytest.mark.parametrize(("ref", "pod"), [("Job/j", "j-w-0"), ("PyTorchJob/j", "j-worker-0")])
def test_a_pod_whose_labels_were_taken_away_is_not_made_again_and_again(
    cluster: Any, job: Job, ref: str, pod: str
) -> None:
    cluster.apply(job() if ref == "Job/j" else TORCH)
    found = cluster.get(f"Pod/{pod}")
    cluster.apply({**found.manifest(), "metadata": {**found.metadata, "name": pod, "labels": {}, "annotations": {}}})
    key = cluster.key(ref)
    answer = cluster.core.query("explain", dict(zip(("kind", "namespace", "name"), key, strict=True)))
    assert answer["waits"][0].startswith(f"Pod {pod} is there already, but its labels are not those of the job's")
    cluster.delete(f"Pod/{pod}")
    assert list(cluster.pods().values()) == ["Running", "Running"]


def test_a_job_that_is_gone_is_forgotten() -> None:
    kind = Recorder(MIDDLE)
    core = JobCore([kind])
    _, middle, _ = family()
    core.fold([Event(None, middle)], 1)
    core.fold([Event(middle, None)], 2)
    assert core.decide(2, frozenset()) == []
    assert kind.seen[-1] == f"forget {middle.uid}"
    assert core.check() == []


def test_explain_says_what_a_job_waits_for(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(let_in=False)
    cluster.apply(job())
    key = Key("Job.batch.volcano.sh", "default", "j")
    answer = cluster.core.query("explain", dict(zip(("kind", "namespace", "name"), key, strict=True)))
    assert answer["reason"] == "NotLetIn"
    with pytest.raises(KeyError, match="whatif"):
        cluster.core.query("whatif", {})
    assert cluster.core.query("explain", {"kind": "Job.batch", "name": "x"})["found"] is False


@pytest.mark.parametrize(
    ("conditions", "phase", "message"),
    [
        ([], "Active", ""),
        ([("Created", "True", "made"), ("Running", "True", "runs")], "Running", ""),
        ([("Running", "False", "ran"), ("Failed", "True", "worker 1 ended with 3")], "Failed", "worker 1 ended with 3"),
    ],
)
def test_a_job_without_a_phase_is_in_the_newest_of_its_conditions(
    conditions: list[tuple[str, str, str]], phase: str, message: str
) -> None:
    told = [{"type": one, "status": status, "message": said} for one, status, said in conditions]
    state = newest_state({"conditions": told})
    assert (state["phase"], state.get("message", "")) == (phase, message)


def test_a_new_status_is_told_by_its_state_and_its_counts() -> None:
    roles = {"Launcher": {"active": 1, "succeeded": 0, "selector": "a=b"}, "Worker": {"active": 2, "failed": 1}}
    assert status_words({"replicaStatuses": roles}) == "Active: Launcher 1 active, Worker 2 active and 1 failed"
    complete = [{"type": "Completed", "status": "True"}]
    assert status_words({"conditions": complete, "replicatedJobsStatus": [{"name": "w", "ready": 0}]}) == "Completed"


def test_a_job_of_no_sense_says_so_and_stops_no_other(cluster: Any, job: Job) -> None:
    cluster.apply(job("bad", policies="[{event: PodPending, action: AbortJob, timeout: soon}]"), job("good"))
    assert cluster.phase("Job/good") == "Running"
    key = Key("Job.batch.volcano.sh", "default", "bad")
    answer = cluster.core.query("explain", dict(zip(("kind", "namespace", "name"), key, strict=True)))
    assert "soon" in answer["message"]


def test_a_job_of_no_sense_stops_no_other_job_and_says_what_is_wrong() -> None:
    class Stumbling(Recorder):
        def reconcile(self, job: Object, view: View, now: int) -> Actions:
            if job.name == "bad":
                raise AttributeError("'int' object has no attribute 'get'")
            return super().reconcile(job, view, now)

    kind = Stumbling(MIDDLE)
    core = JobCore([kind])
    bad, good = made("batch/v1", "Job", "bad"), made("batch/v1", "Job", "good")
    core.fold([Event(None, bad), Event(None, good)], 1)
    core.decide(1, frozenset())
    assert kind.looks == [1]
    answer = core.query("explain", {"kind": MIDDLE, "namespace": "default", "name": "bad"})
    assert answer["message"] == "AttributeError: 'int' object has no attribute 'get'"
