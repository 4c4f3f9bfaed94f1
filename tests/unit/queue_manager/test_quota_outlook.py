"""When somebody who waits in a ClusterQueue gets its turn, as far as those who hold its quota say when they end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.answer_lines import answer_lines
from kube import Key, Manifest, rfc3339
from queue_manager.domain.admitting.quota_outlook import MOST_HOLDERS

KUEUE = "kueue.x-k8s.io/v1beta2"
LABEL = "kueue.x-k8s.io/queue-name"
ESTIMATE = "tidegate.dev/running-estimate"
MINUTE = 60_000


def queue(cluster: Any, name: str, cpu: int, flavors: tuple[str, ...] = ("f",), **spec: Any) -> None:
    """A ClusterQueue and a LocalQueue of its name, with so many CPUs of each flavor."""
    for flavor in flavors:
        cluster.put({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": flavor}, "spec": {}})
    given = [{"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cpu}]} for flavor in flavors]
    groups = [{"coveredResources": ["cpu"], "flavors": given}]
    content = {"namespaceSelector": {}, "resourceGroups": groups, **spec}
    cluster.put({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": content})
    metadata = {"name": name, "namespace": "default"}
    cluster.put({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}})


def pod(cluster: Any, name: str, cpu: int, at: str, minutes: int = 0, priority: int = 0) -> None:
    """One that says that it runs so many minutes; 0 for nothing said."""
    said = {ESTIMATE: f"{minutes}m"} if minutes else {}
    metadata = {"name": name, "namespace": "default", "labels": {LABEL: at}, "annotations": said}
    spec = {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def running(cluster: Any, name: str, cpu: int, at: str, minutes: int = 0) -> None:
    """Such a pod that started just now."""
    pod(cluster, name, cpu, at, minutes)
    cluster.settle()
    cluster.bind(name)
    cluster.status(Key("Pod", "default", name), {"phase": "Running", "startTime": rfc3339(cluster.now)})
    cluster.settle()


def explained(cluster: Any, name: str) -> Manifest:
    """The answer, for which nothing may have been moved in the books."""
    before = usages(cluster)
    asked = {"kind": "Pod", "namespace": "default", "name": name, "now": cluster.now}
    found: Manifest = cluster.core.query("explain", asked)
    assert usages(cluster) == before
    return found


def usages(cluster: Any) -> list[Any]:
    """What is used in the trees of the books, and who uses too much, in its order."""
    tree = cluster.core._cohorts.books.tree
    return [
        (node.name, dict(node.usage), [(place, [child.name for child in over]) for place, over in node.over.items()])
        for node in (*tree.queues.values(), *tree.cohorts.values())
    ]


def test_the_head_waits_for_the_first_who_leaves_it_enough_by_when_that_should_end(cluster: Any) -> None:
    queue(cluster, "q", 4)
    running(cluster, "small", 1, "q", minutes=10)
    running(cluster, "long", 2, "q", minutes=90)
    running(cluster, "short", 1, "q", minutes=30)
    cluster.now += 5 * MINUTE
    pod(cluster, "head", 1, "q")
    pod(cluster, "second", 2, "q")
    cluster.settle()
    answer = explained(cluster, "head")
    assert (answer["after"], answer["estimateMs"]) == (["default/small"], cluster.now + 5 * MINUTE)
    assert answer["estimate"] == f"{rfc3339(cluster.now + 5 * MINUTE)}, by when small should have ended"


def test_of_several_who_have_to_end_the_last_says_when_and_who_need_not_is_left_out(cluster: Any) -> None:
    queue(cluster, "q", 8)
    running(cluster, "tiny", 1, "q", minutes=5)
    running(cluster, "half", 3, "q", minutes=20)
    running(cluster, "rest", 4, "q", minutes=40)
    pod(cluster, "head", 7, "q")
    cluster.settle()
    answer = explained(cluster, "head")
    assert answer["after"] == ["default/half", "default/rest"]
    assert answer["estimateMs"] == cluster.now + 40 * MINUTE


def test_where_one_who_has_to_end_says_nothing_no_time_is_given_and_it_is_named(cluster: Any) -> None:
    queue(cluster, "q", 4)
    running(cluster, "silent", 3, "q")
    running(cluster, "known", 1, "q", minutes=20)
    pod(cluster, "head", 4, "q")
    cluster.settle()
    answer = explained(cluster, "head")
    assert answer["estimate"] == "once known, silent ended; nobody says when that of silent is"
    assert "estimateMs" not in answer


def test_who_is_late_is_one_of_whom_nobody_knows_when_it_ends(cluster: Any) -> None:
    queue(cluster, "q", 4)
    running(cluster, "late", 4, "q", minutes=20)
    pod(cluster, "head", 4, "q")
    cluster.now += 20 * MINUTE
    cluster.settle()
    assert explained(cluster, "head")["estimate"] == "once late ended; nobody says when that is"


def test_quota_that_others_of_the_cohort_borrowed_comes_back_when_they_end(cluster: Any) -> None:
    queue(cluster, "a", 2, cohortName="c")
    queue(cluster, "b", 2, cohortName="c")
    queue(cluster, "apart", 9)
    running(cluster, "elsewhere", 9, "apart", minutes=1)
    running(cluster, "own", 1, "a", minutes=60)
    running(cluster, "borrower", 3, "b", minutes=15)
    pod(cluster, "head", 3, "a")
    cluster.settle()
    answer = explained(cluster, "head")
    assert (answer["after"], answer["estimateMs"]) == (["default/borrower"], cluster.now + 15 * MINUTE)


def test_the_flavor_that_is_free_first_decides(cluster: Any) -> None:
    queue(cluster, "q", 2, flavors=("f", "g"))
    running(cluster, "on-f", 2, "q", minutes=60)
    running(cluster, "on-g", 2, "q", minutes=30)
    pod(cluster, "head", 2, "q")
    cluster.settle()
    assert explained(cluster, "head")["after"] == ["default/on-g"]


def test_what_asks_for_more_than_there_is_never_gets_its_turn(cluster: Any) -> None:
    queue(cluster, "q", 4)
    running(cluster, "some", 2, "q", minutes=10)
    pod(cluster, "giant", 5, "q")
    cluster.settle()
    answer = explained(cluster, "giant")
    assert answer["estimate"].startswith("never as things are") and "estimateMs" not in answer


def test_who_is_outside_of_any_line_is_given_no_estimate(cluster: Any) -> None:
    queue(cluster, "q", 4, stopPolicy="Hold")
    pod(cluster, "held", 1, "q")
    cluster.settle()
    assert not {"estimate", "outlook"} & explained(cluster, "held").keys()


@pytest.mark.parametrize("strategy", ["StrictFIFO", "BestEffortFIFO"])
def test_who_is_not_the_first_is_told_behind_whom_and_when_the_first_has_its_turn(cluster: Any, strategy: str) -> None:
    queue(cluster, "q", 4, queueingStrategy=strategy)
    running(cluster, "busy", 4, "q", minutes=10)
    for number in range(7):
        pod(cluster, f"w{number}", 4, "q", priority=9 - number)
    cluster.settle()
    answer = explained(cluster, "w6")
    assert (answer["behindCount"], answer["behind"]) == (6, [f"default/w{number}" for number in range(5)])
    when = rfc3339(cluster.now + 10 * MINUTE)
    earlier = "" if strategy == "StrictFIFO" else ", or earlier with quota that is too little for those"
    assert answer["estimate"] == (
        f"once w0, w1, w2, w3, w4 and 1 more, before it in ClusterQueue q, had their turn{earlier}; "
        f"w0: {when}, by when busy should have ended"
    )
    assert "estimateMs" not in answer


@pytest.mark.parametrize(("strategy", "told"), [("StrictFIFO", "never as things are"), ("BestEffortFIFO", "2026-")])
def test_one_who_never_finds_quota_keeps_others_waiting_only_where_nobody_passes(
    cluster: Any, strategy: str, told: str
) -> None:
    queue(cluster, "q", 4, queueingStrategy=strategy)
    running(cluster, "busy", 4, "q", minutes=10)
    pod(cluster, "giant", 5, "q", priority=9)
    pod(cluster, "small", 1, "q")
    cluster.settle()
    assert told in explained(cluster, "small")["estimate"]
    assert ("behind" in explained(cluster, "small")) is (strategy == "StrictFIFO")


def test_who_is_promised_the_quota_of_others_waits_for_them(cluster: Any) -> None:
    queue(cluster, "q", 4, preemption={"withinClusterQueue": "LowerPriority"})
    running(cluster, "low", 4, "q", minutes=90)
    pod(cluster, "high", 4, "q", priority=5)
    cluster.settle()
    pod(cluster, "next", 4, "q", minutes=5)
    cluster.settle()
    assert explained(cluster, "high")["estimate"] == "once low gave its quota back"
    answer = explained(cluster, "next")
    assert answer["estimate"] == "once low, high ended; nobody says when that of high is"


def test_a_job_holds_quota_for_every_round_of_its_pods_and_a_group_from_when_it_was_placed(cluster: Any) -> None:
    queue(cluster, "q", 2)
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"namespace": "default", "labels": {LABEL: "q"}, "annotations": {ESTIMATE: "10m"}}
    spec = {"suspend": True, "parallelism": 1, "completions": 3, "template": {"spec": {"containers": [container]}}}
    cluster.put({"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "name": "j"}, "spec": spec})
    group = {"minMember": 1, "minResources": {"cpu": "1"}}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    cluster.put({**kind, "metadata": {**metadata, "name": "g"}, "spec": group})
    cluster.settle()
    started = cluster.now
    cluster.status(Key("Job.batch", "default", "j"), {"startTime": rfc3339(started)})
    cluster.now += 2 * MINUTE
    placed = {"type": "Scheduled", "status": "True", "lastTransitionTime": rfc3339(cluster.now)}
    cluster.status(Key("PodGroup.scheduling.volcano.sh", "default", "g"), {"phase": "Running", "conditions": [placed]})
    cluster.now += MINUTE
    pod(cluster, "head", 1, "q")
    cluster.settle()
    answer = explained(cluster, "head")
    assert (answer["after"], answer["estimateMs"]) == (["default/g"], started + 12 * MINUTE)
    pod(cluster, "head", 2, "q")
    cluster.settle()
    assert explained(cluster, "head")["estimateMs"] == started + 30 * MINUTE


def test_work_that_may_run_only_for_so_long_ends_by_then(cluster: Any) -> None:
    queue(cluster, "q", 2)
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}]
    spec = {"queueName": "q", "podSets": sets, "maximumExecutionTimeSeconds": 600}
    metadata = {"name": "own", "namespace": "default"}
    cluster.put({"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec})
    cluster.settle()
    started = cluster.now
    cluster.now += MINUTE
    pod(cluster, "head", 1, "q")
    cluster.settle()
    assert explained(cluster, "head")["estimateMs"] == started + 10 * MINUTE


def test_too_many_holders_are_not_looked_into(cluster: Any) -> None:
    queue(cluster, "q", MOST_HOLDERS + 1)
    for number in range(MOST_HOLDERS + 1):
        pod(cluster, f"p{number}", 1, "q", minutes=1)
    pod(cluster, "head", 1, "q", priority=-1)
    cluster.settle()
    answer = explained(cluster, "head")
    assert "estimate" not in answer and "more than 1000 workloads hold" in answer["outlook"]


def test_the_estimate_is_told_in_the_line_that_pods_have(cluster: Any) -> None:
    queue(cluster, "q", 4)
    running(cluster, "busy", 4, "q", minutes=10)
    pod(cluster, "head", 4, "q")
    cluster.settle()
    lines = answer_lines(cluster.read("Pod", "head"), "queue_manager", explained(cluster, "head"))
    assert f"  estimate: {rfc3339(cluster.now + 10 * MINUTE)}, by when busy should have ended" in lines


Holders = list[tuple[int, int, str]]
HOLDERS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5), st.sampled_from(["a", "b", "kept"])), max_size=7)


@given(HOLDERS, st.integers(1, 9))
def test_the_time_is_that_of_taking_the_holders_away_one_by_one(cluster_of: Any, holders: Holders, asked: int) -> None:
    cluster = cluster_of()
    lending = {"name": "cpu", "nominalQuota": 4, "lendingLimit": 1}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [lending]}]}]
    for name, more in (("a", {}), ("b", {}), ("kept", {"resourceGroups": groups})):
        queue(cluster, name, 3, cohortName="c", **more)
    for number, (cpu, minutes, at) in enumerate(holders):
        running(cluster, f"p{number}", cpu, at, minutes)
    for number in range(len(holders)):
        if "tidegate.dev/admission" not in cluster.read("Pod", f"p{number}").annotations:
            cluster.remove("Pod", f"p{number}")
    pod(cluster, "head", asked, "a")
    cluster.settle()
    if "tidegate.dev/admission" in cluster.read("Pod", "head").annotations:
        return
    told = explained(cluster, "head")
    begun, until = cluster.now, None
    stated = sorted((minutes, f"p{number}") for number, (_, minutes, _) in enumerate(holders) if minutes)
    for minutes, name in stated:
        if Key("Pod", "default", name) in cluster.store.objects:
            cluster.remove("Pod", name)
            cluster.settle()
        if until is None and "tidegate.dev/admission" in cluster.read("Pod", "head").annotations:
            until = begun + minutes * MINUTE
    assert told.get("estimateMs") == until
