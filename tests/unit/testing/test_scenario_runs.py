"""Running a scenario: what each step asks of the target, and what always has to be so."""

from collections.abc import Callable
from typing import Any

import pytest

from testing.scenarios.run import Result

NODE = {"nodes": [{"name": "n", "allocatable": {"cpu": 4, "memory": "8Gi"}}]}
TRUE = {"expect": {"evictedCount": {"min": 0}}}


def pods(name: str, cpu: int = 1, **more: Any) -> dict[str, Any]:
    return {"apply": [{"kind": "Pod", "metadata": {"name": name}, "requests": {"cpu": cpu}, **more}]}


def test_the_target_is_opened_with_policy_and_simulation_and_closed_at_the_end(
    run: Callable[..., Result], clusters: list[Any]
) -> None:
    assert run(TRUE, policy={"placement": "spread"}, simulate={"podStart": "20s"}).passed
    cluster = clusters[-1]
    assert (cluster.policy, cluster.simulate, cluster.closed) == ({"placement": "spread"}, {"podStart": "20s"}, True)


def test_a_refusal_is_expected_with_its_text(run: Callable[..., Result]) -> None:
    bad = pods("p", annotations={"refuse": "Quota exceeded"})
    assert run({**bad, "rejects": "quota EXCEEDED"}, {"expect": {"pods": {"p": {"exists": False}}}}).passed
    result = run({**bad, "rejects": "priority"})
    assert (result.matcher, result.wanted) == ("apply Pod/p", "refused with 'priority'")
    assert result.got == "refused: Pod p: refused, Quota exceeded"


def test_a_refusal_that_is_missing_or_not_expected_fails_the_step(run: Callable[..., Result]) -> None:
    accepted = run({**pods("p"), "rejects": "quota"})
    assert (accepted.step, accepted.got) == (1, "accepted")
    refused = run(pods("p", annotations={"refuse": "no"}), TRUE)
    assert (refused.wanted, refused.got) == ("accepted", "refused: Pod p: refused, no")


def test_nothing_of_a_refused_object_may_be_stored(run: Callable[..., Result]) -> None:
    result = run({**pods("p", annotations={"refuse": "no", "leak": "yes"}), "rejects": "no"})
    assert (result.matcher, result.wanted, result.got) == ("apply Pod/p", "nothing of it stored", "it is stored")


def test_a_deletion_takes_along_what_is_owned_and_can_be_refused(run: Callable[..., Result]) -> None:
    job = {"apply": [{"kind": "Job", "metadata": {"name": "j", "annotations": {}}, "spec": {}}]}
    owned = pods("j-0", owner="Job/j")
    assert run(NODE, job, owned, {"delete": ["Job/j"]}, {"expect": {"count": [{"all": True, "exists": 0}]}}).passed
    kept = pods("p", annotations={"keep": "yes"})
    assert run(kept, {"delete": ["Pod/p"], "rejects": "kept"}).passed
    result = run(kept, {"delete": ["Pod/p"]}, TRUE)
    assert (result.step, result.matcher, result.got) == (2, "delete Pod/p", "refused: Pod/default/p is kept")


def test_applying_an_object_again_replaces_its_spec_and_keeps_the_metadata_left_out(run: Callable[..., Result]) -> None:
    first = {
        "kind": "Queue",
        "metadata": {"name": "q", "labels": {"a": "b"}},
        "spec": {"weight": 1, "reclaimable": True},
    }
    again = {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 2}}
    expect = [
        {"ref": "Queue/q", "path": "spec.weight", "equals": 2},
        {"ref": "Queue/q", "path": "spec.reclaimable", "exists": False},
        {"ref": "Queue/q", "path": "metadata.labels.a", "equals": "b"},
    ]
    assert run({"apply": [first]}, {"apply": [again]}, {"expect": {"object": expect}}).passed


def test_a_bound_pod_that_is_applied_again_stays_where_it_is(run: Callable[..., Result]) -> None:
    assert run(NODE, pods("p"), pods("p", labels={"a": "b"}), {"expect": {"pods": {"p": {"node": "n"}}}}).passed


def test_a_command_is_aimed_at_the_uid_of_its_target(run: Callable[..., Result]) -> None:
    job = {"apply": [{"kind": "Job", "metadata": {"name": "j"}, "spec": {}}]}
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": ""}
    command = {"apply": [{"kind": "Command", "metadata": {"name": "c"}, "action": "AbortJob", "target": target}]}
    assert run(
        job, command, {"expect": {"object": [{"ref": "Command/c", "path": "target.uid", "equals": "uid-1"}]}}
    ).passed


def test_objects_of_one_step_are_applied_in_one_go_unless_they_refer_to_each_other(
    run: Callable[..., Result], clusters: list[Any]
) -> None:
    owner = {"kind": "Job", "metadata": {"name": "j"}, "spec": {}}
    free = {"kind": "Pod", "metadata": {"name": "p-{i}"}, "count": 2}
    owned = {"kind": "Pod", "metadata": {"name": "j-0"}, "owner": "Job/j"}
    assert run({"apply": [owner, free, owned]}, TRUE).passed
    assert clusters[-1].applied == [["j", "p-0", "p-1"], ["j-0"]]


def test_a_pod_with_a_node_runs_there_and_is_older_than_the_start(run: Callable[..., Result]) -> None:
    classes = {"apply": [{"kind": "PriorityClass", "metadata": {"name": "low"}, "value": 10}]}
    running = pods("p-{i}", node="n", count=2, priorityClassName="low")
    expect = {
        "pods": {"p-0": {"node": "n", "phase": "Running", "ready": True}},
        "object": [
            {"ref": "Pod/p-0", "path": "metadata.creationTimestamp", "equals": "2025-12-31T23:59:58Z"},
            {"ref": "Pod/p-1", "path": "metadata.creationTimestamp", "equals": "2025-12-31T23:59:59Z"},
            {"ref": "Pod/p-1", "path": "spec.priority", "equals": 10},
        ],
    }
    assert run(NODE, classes, running, {"expect": expect}).passed


def test_a_pod_belongs_to_the_owner_that_it_names(run: Callable[..., Result]) -> None:
    deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    pod = {"kind": "Pod", "metadata": {"name": "web-0"}, "owner": "Deployment/web", "node": "n"}
    owner = {"kind": "Deployment", "name": "web", "uid": "uid-2", "controller": True, "apiVersion": "apps/v1"}
    expect = {"object": [{"ref": "Pod/web-0", "path": "metadata.ownerReferences", "contains": owner}]}
    assert run(NODE, {"apply": [deployment, pod]}, {"expect": expect}).passed
    result = run({"apply": [pod]}, TRUE)
    assert (result.matcher, result.got) == ("error", "LookupError: Pod/web-0: its owner Deployment/web does not exist")


def test_time_moves_only_by_advance(run: Callable[..., Result], clusters: list[Any]) -> None:
    ends = pods("p", simulate={"duration": "60s"})
    before, after = ({"expect": {"pods": {"p": {"phase": phase}}}} for phase in ("Running", "Succeeded"))
    assert run(NODE, ends, {"advance": "59s"}, before, {"advance": "1s"}, after).passed
    assert clusters[-1].time == 1767225660000


def test_reports_reach_the_pods_that_are_named_or_selected(run: Callable[..., Result]) -> None:
    steps = [NODE, pods("p-{i}", count=3, labels={"a": "b"})]
    select = {"podPhase": [{"select": {"labels": {"a": "b"}}, "take": 2, "phase": "Failed", "exitCode": 3}]}
    expect = {
        "count": [{"all": True, "failed": 2, "running": 1}],
        "pods": {"p-2": {"phase": "Running", "ready": False}},
    }
    assert run(*steps, select, {"podReady": {"p-2": False}}, {"expect": expect}).passed
    result = run(*steps, {"podPhase": {"q": "Failed"}}, TRUE)
    assert (result.step, result.matcher, result.got) == (3, "report on q", "0 of them")


def test_a_node_can_be_closed_shrunk_and_removed(run: Callable[..., Result]) -> None:
    closed = {"node": {"n": {"unschedulable": True}}}
    waits = {"expect": {"pods": {"p": {"node": None}}}}
    assert run(NODE, closed, pods("p"), waits).passed
    assert run(NODE, {"node": {"n": {"deleted": True}}}, pods("p"), waits).passed
    shrunk = {"expect": {"object": [{"ref": "Node/n", "path": "status.allocatable.cpu", "equals": 1}]}}
    assert run(NODE, {"node": {"n": {"allocatable": {"cpu": 1}}}}, shrunk).passed
    assert run({"node": {"n": {"ready": False}}}, TRUE).got == "no such node"


def test_samples_and_restarts_reach_the_target(run: Callable[..., Result], clusters: list[Any]) -> None:
    usage = {"usage": {"n": {"system": {"cpu": 1}}}}
    metrics = {"metrics": [{"service": "m", "concurrency": 2}]}
    assert run(NODE, usage, metrics, {"restart": ["scheduler", "agents"]}, TRUE).passed
    cluster = clusters[-1]
    assert cluster.usage["n"].total == {"cpu": 1000}
    assert [sample.name for sample in cluster.metrics] == ["concurrency"]
    assert cluster.restarted == ["scheduler", "agents"]


def test_what_the_target_raises_ends_the_scenario_with_a_result(
    run: Callable[..., Result], clusters: list[Any]
) -> None:
    result = run(NODE, TRUE, faults=["crash"])
    assert result == Result("gang", "s", False, 1, "error", "none", "RuntimeError: the scheduler is gone")
    assert clusters[-1].closed


GANG = [
    {"apply": [{"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}]},
    pods("w-{i}", cpu=2, podGroup="g", count=3),
]


@pytest.mark.parametrize(
    ("steps", "fault", "told"),
    [
        ([NODE, pods("p-{i}", cpu=3, count=2)], "overfill", "node n is overrun: 6 cpu of 4 used, by p-0, p-1"),
        (
            [NODE, pods("p"), pods("p", labels={"hit": "yes"})],
            "move",
            "pod p is bound to elsewhere after it was bound to n",
        ),
        (
            [NODE, pods("p"), pods("p", labels={"hit": "yes"})],
            "lose",
            "pod p is gone, and nobody deleted or evicted it",
        ),
        ([NODE, *GANG], "split", "gang g is bound in part (w-0, w-1): 2 of at least 3 members"),
        ([TRUE], "books", "the books do not add up"),
    ],
)
def test_a_broken_invariant_fails_the_step_that_broke_it(
    run: Callable[..., Result], steps: list[dict[str, Any]], fault: str, told: str
) -> None:
    result = run(*steps, TRUE, faults=[fault])
    assert (result.passed, result.matcher, result.got) == (False, "always", told)


def test_a_gang_that_started_may_go_on_without_its_minimum(run: Callable[..., Result]) -> None:
    big = {"nodes": [{"name": "n", "allocatable": {"cpu": 6}}]}
    assert run(big, *GANG, {"podPhase": {"w-0": "Failed"}}, {"delete": ["Pod/w-1"]}, TRUE).passed


def test_a_gang_that_lost_all_members_needs_its_whole_minimum_again(run: Callable[..., Result]) -> None:
    big = {"nodes": [{"name": "n", "allocatable": {"cpu": 6}}]}
    gone = {"delete": ["Pod/w-0", "Pod/w-1", "Pod/w-2"]}
    result = run(big, *GANG, gone, pods("x", podGroup="g"), TRUE, faults=["split"])
    assert result.got == "gang g is bound in part (x): 1 of at least 3 members"


def test_the_minimum_of_every_role_counts(run: Callable[..., Result]) -> None:
    group = {
        "apply": [{"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2, "minTaskMember": {"ps": 1}}}]
    }
    workers = pods("w-{i}", podGroup="g", count=2, annotations={"volcano.sh/task-spec": "worker"})
    result = run(NODE, group, workers, TRUE)
    assert result.got == "gang g is bound in part (w-0, w-1): 0 of at least 1 members of role ps"


def test_a_node_that_shrank_under_its_use_is_no_fault_but_a_new_pod_there_is(run: Callable[..., Result]) -> None:
    shrink = {"node": {"n": {"allocatable": {"cpu": 2}}}}
    assert run(NODE, pods("p", cpu=4), shrink, TRUE).passed
    result = run(NODE, pods("p", cpu=4), shrink, pods("q"), TRUE, faults=["overfill"])
    assert (result.step, result.got) == (4, "node n is overrun: 5 cpu of 2 used, by q")


def test_the_cap_of_a_queue_counts_at_every_ancestor(run: Callable[..., Result]) -> None:
    def queues(cpu: int) -> dict[str, Any]:
        return {
            "apply": [
                {"kind": "Queue", "metadata": {"name": "top"}, "spec": {"capability": {"cpu": cpu}}},
                {"kind": "Queue", "metadata": {"name": "leaf"}, "spec": {"parent": "top"}},
            ]
        }

    over = pods("p-{i}", count=3, queue="leaf")
    assert run(NODE, queues(2), over, TRUE).got == "queue top is overrun: 3 cpu of 2 used, by p-0, p-1, p-2"
    assert run(NODE, queues(3), over, queues(2), TRUE).passed


def test_the_maximum_of_an_elastic_quota_is_a_cap(run: Callable[..., Result]) -> None:
    quota = {"apply": [{"kind": "ElasticQuota", "metadata": {"name": "a"}, "spec": {"max": {"cpu": 1}}}]}
    result = run(NODE, quota, pods("p-{i}", count=2, queue="a"), TRUE, policy={"queueing": "elastic-quota"})
    assert result.got == "quota a is overrun: 2 cpu of 1 used, by p-0, p-1"


def test_pods_that_were_given_as_running_are_nobodys_fault(run: Callable[..., Result]) -> None:
    assert run(NODE, pods("p-{i}", cpu=3, node="n", count=2), TRUE).passed


def test_a_pod_that_was_deleted_or_whose_node_is_gone_is_not_lost(run: Callable[..., Result]) -> None:
    assert run(NODE, pods("p"), {"delete": ["Pod/p"]}, TRUE).passed
    hit = pods("p", labels={"hit": "yes"})
    assert run(NODE, pods("p"), {"node": {"n": {"deleted": True}}}, hit, TRUE, faults=["lose"]).passed
