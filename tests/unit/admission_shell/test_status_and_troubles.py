"""What the whole system says of itself, and what keeps a pod from running on its node."""

from typing import Any

import orjson
import pytest

from admission.answer_lines import readable
from admission.answers import MyStatus
from admission.applier import Change
from admission.questions import Questions
from admission.switch import SchedulingSwitch
from admission.users import Denied, User
from chassis import LoopClock
from kube import Key, Manifest, Object
from kube.scheduling_pause import NAMESPACE
from tidegate import subjects


def states(desk: Any) -> dict[str, tuple[bool, str]]:
    answer = desk.do(MyStatus(desk.bus, desk.view, ("gang_scheduler",), "1", None).answer())
    return {one.name: (one.ready, one.message) for one in answer.services}


def test_the_writer_of_facts_is_a_service_like_any_other(desk: Any) -> None:
    assert states(desk)["cluster_gateway"] == (True, "")
    desk.kill_gateway()
    ready, message = states(desk)["cluster_gateway"]
    assert not ready and message.startswith("nothing can change: ")


def test_who_paused_scheduling_is_told_until_it_goes_on(desk: Any) -> None:
    async def fine(payload: bytes) -> bytes:
        return b"{}"

    desk.do(desk.bus.serve(subjects.question("gang_scheduler", "status"), fine))
    switch = SchedulingSwitch(desk.view, desk.applier, LoopClock())
    ops = User("ops", "t", (NAMESPACE,))
    results, revision, told = desk.do(switch.set(ops, paused=True, reason="repairs"))
    assert [result.outcome for result in results] == ["created", "created"] and revision == desk.view.revision
    assert told.startswith("scheduling is paused since ") and told.endswith(" by ops: repairs")
    assert states(desk)["gang_scheduler"] == (True, told)
    assert desk.do(switch.set(ops, paused=False, reason=""))[2] == "scheduling goes on"
    assert states(desk)["gang_scheduler"] == (True, "")


def test_who_may_not_write_in_the_systems_namespace_pauses_nothing(desk: Any) -> None:
    with pytest.raises(Denied, match="may not write in namespace tidegate-system"):
        desk.do(
            SchedulingSwitch(desk.view, desk.applier, LoopClock()).set(User("ann", "t", ("a",)), paused=True, reason="")
        )


def test_a_node_whose_agent_is_silent_is_named(desk: Any) -> None:
    assert "node_agent" not in states(desk)
    for name, ready in (("a", "True"), ("b", "Unknown")):
        condition = {"type": "Ready", "status": ready, "message": "not heard for 40 s"}
        status = {"allocatable": {"cpu": "1"}, "conditions": [condition]}
        desk.enact(lambda cluster, name=name, status=status: cluster.create(Key("Node", "", name), {}, {}, status))
    assert states(desk)["node_agent"] == (False, "b: not heard for 40 s")


def test_a_manifest_that_is_none_is_refused_alone(desk: Any) -> None:
    """What is wrong with one object is said of it, and keeps nothing else out."""
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}}
    results, _ = desk.do(desk.applier.apply("ann", [Change({**good, "metadata": 5}), Change(good)]))
    assert [result.outcome for result in results] == ["refused", "created"]
    assert [error.path for error in results[0].errors] == ["metadata"]


def test_a_pod_on_its_node_says_what_it_waits_for(desk: Any) -> None:
    async def placed(payload: bytes) -> bytes:
        return orjson.dumps({"verdict": "Placed", "message": "pod p is on n"})

    desk.do(desk.bus.serve("tidegate.request.gang_scheduler.explain", placed))
    waiting = {"reason": "CreateContainerConfigError", "message": "ConfigMap default/c does not exist"}
    status = {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "m", "state": {"waiting": waiting}},
            {"name": "o", "state": {"terminated": {"exitCode": 3}}},
        ],
    }
    pod = Object(Key("Pod", "default", "p"), "u", {}, {"spec": {"nodeName": "n"}}, status)
    lines, _ = desk.do(Questions(desk.bus, desk.view.store).explain(pod))
    assert lines == [
        "Pod/default/p: Placed",
        "  pod p is on n",
        "  container m waits (CreateContainerConfigError): ConfigMap default/c does not exist",
        "  container o ended with exit code 3",
    ]


def explained(desk: Any, item: Object, answer: Manifest, service: str = "gang_scheduler", name: str = "explain") -> Any:
    """The lines about ``item`` where ``service`` answers ``answer``, into whose message the question is put."""

    async def asked(payload: bytes) -> bytes:
        message = str(answer.get("message") or "").format(**orjson.loads(payload))
        return orjson.dumps(answer | ({"message": message} if message else {}))

    desk.do(desk.bus.serve(f"tidegate.request.{service}.{name}", asked))
    return desk.do(Questions(desk.bus, desk.view.store).explain(item))[0]


def test_a_container_that_is_held_back_says_how_it_ended_before(desk: Any) -> None:
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container m"}
    ended = {"exitCode": 128, "message": "exec 'mpirun': executable file not found"}
    status = {"containerStatuses": [{"name": "m", "state": {"waiting": waiting}, "lastState": {"terminated": ended}}]}
    pod = Object(Key("Pod", "default", "p"), "u", {}, {"spec": {"nodeName": "n"}}, status)
    assert explained(desk, pod, {"verdict": "Placed"})[1:] == [
        "  container m waits (CrashLoopBackOff): back-off 20s restarting failed container m",
        "  before, it ended with exit code 128: exec 'mpirun': executable file not found",
    ]


def test_a_job_in_a_local_queue_is_asked_about_where_its_quota_is_kept(desk: Any) -> None:
    job = Object(Key("Job.batch", "default", "sweep"), "u", {}, {"spec": {"suspend": True}}, {})
    held = {"verdict": "NotLetIn", "rule": "WaitingForQuota", "message": "{kind} {name} needs 3 cpu more"}
    lines = ["  Job.batch sweep needs 3 cpu more"]
    assert explained(desk, job, held, "queue_manager") == ["Job/default/sweep: NotLetIn (WaitingForQuota)", *lines]


def test_a_workload_is_asked_about_by_the_job_that_it_was_made_for(desk: Any) -> None:
    metadata = {"annotations": {"tidegate.dev/workload-of": "Job.batch/sweep"}}
    workload = Object(Key("Workload.kueue.x-k8s.io", "default", "job-sweep-1"), "u", metadata, {}, {})
    answer = {"verdict": "LetIn", "message": "{kind} {name} holds quota"}
    assert explained(desk, workload, answer, "queue_manager")[1:] == ["  Job.batch sweep holds quota"]


def test_what_nobody_is_asked_about_says_itself_how_it_is(desk: Any) -> None:
    conditions = [{"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "there is no flavor f"}]
    status = {"conditions": conditions, "pendingWorkloads": 2}
    queue = Object(Key("ClusterQueue.kueue.x-k8s.io", "", "q"), "u", {}, {}, status)
    assert desk.do(Questions(desk.bus, desk.view.store).explain(queue))[0] == [
        "ClusterQueue/q: not Active (FlavorNotFound)",
        "  there is no flavor f",
        "  workloads: 2 pending, 0 reserving, 0 admitted",
    ]
    done = {"conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached"}]}
    job = Object(Key("Job.batch", "default", "plain"), "u", {}, {}, done)
    assert explained(desk, job, {}, "queue_manager") == ["Job/default/plain: Complete (CompletionsReached)"]


def test_a_migration_that_waits_says_for_what(desk: Any) -> None:
    status = {"phase": "Pending", "message": "2 pods of node a are on the move, and at most 2 may be"}
    job = Object(Key("PodMigrationJob.scheduling.koordinator.sh", "", "move"), "u", {}, {}, status)
    assert desk.do(Questions(desk.bus, desk.view.store).explain(job))[0] == [
        "PodMigrationJob/move: Pending",
        "  2 pods of node a are on the move, and at most 2 may be",
    ]


def test_an_elastic_quota_is_told_with_what_it_has(desk: Any) -> None:
    quota = Object(Key("ElasticQuota.scheduling.sigs.k8s.io", "default", "ml"), "u", {}, {}, {})
    lines = explained(desk, quota, {"allocated": {"cpu": 2000}}, "queue_manager", "queue")
    assert lines == ["ElasticQuota/default/ml:", "  request: nothing", "  allocated: cpu 2", "  deserved: nothing"]


@pytest.mark.parametrize(
    ("exact", "short"),
    [
        ("24684084Ki", "23.54Gi"),
        ("36264Mi", "35.41Gi"),
        ("10240000Ki", "9.76Gi"),
        ("1048576Ki", "1Gi"),
        ("960Mi", "960Mi"),
        ("3750m", "3750m"),
        ("128Gi", "128Gi"),
    ],
)
def test_long_amounts_of_memory_are_told_in_larger_units(exact: str, short: str) -> None:
    assert readable(exact) == short
