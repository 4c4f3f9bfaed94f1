"""batch/v1 Jobs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gateway.domain.controllers.indexes import format_indexes, parse_indexes
from kube import rfc3339
from kube.environment import environment

DISRUPTED = [{"type": "DisruptionTarget"}]


def job(town: Any, template: Any, **spec: Any) -> None:
    town.apply("Job", "j", {"template": template(restartPolicy="Never"), **spec})


def ended(town: Any) -> tuple[str, str]:
    """Type and reason of the condition that ended the Job."""
    for name in ("Complete", "Failed"):
        if town.condition("Job", "j", name):
            return name, town.condition("Job", "j", name)["reason"]
    return "", ""


def counts(town: Any) -> tuple[int, int, int]:
    status = town.status("Job", "j")
    return status["active"], status["succeeded"], status["failed"]


def test_a_job_runs_so_many_at_once_until_enough_have_succeeded(town: Any, template: Any) -> None:
    job(town, template, parallelism=2, completions=3)
    assert len(town.names()) == 2
    town.finish(town.names()[0])
    assert counts(town) == (2, 1, 0)
    for name in town.names():
        town.finish(name)
    assert ended(town) == ("Complete", "CompletionsReached")
    assert counts(town) == (0, 3, 0)
    assert town.status("Job", "j")["completionTime"] == rfc3339(town.cluster.now)


def test_pods_carry_the_labels_of_their_job(town: Any, template: Any) -> None:
    job(town, template)
    [pod] = town.live()
    assert pod.name.startswith("j-") and len(pod.name) == 7
    assert pod.labels["batch.kubernetes.io/job-name"] == pod.labels["job-name"] == "j"
    assert pod.labels["controller-uid"] == town.read("Job", "j").uid


def test_a_work_queue_is_done_when_one_succeeded_and_none_is_left(town: Any, template: Any) -> None:
    job(town, template, parallelism=3)
    first, *others = town.names()
    town.finish(first)
    assert len(town.names()) == 2 and ended(town) == ("", "")
    for name in others:
        town.finish(name)
    assert ended(town) == ("Complete", "CompletionsReached")


def test_a_failed_pod_is_followed_by_another_after_a_delay_that_doubles(town: Any, template: Any) -> None:
    """10 s, 20 s, and 10 s again after a success."""
    job(town, template, completions=2)
    for wait in (10, 20):
        town.finish(town.names()[0], "Failed", 1)
        town.advance(wait - 1)
        assert town.names() == []
        town.advance(1)
        assert len(town.names()) == 1
    town.finish(town.names()[0])
    town.advance(1)
    town.finish(town.names()[0], "Failed", 1)
    town.advance(10)
    assert len(town.names()) == 1
    assert counts(town) == (1, 1, 3)


def test_the_job_fails_with_one_failure_more_than_the_limit(town: Any, template: Any) -> None:
    """The other pods are stopped, and the message has the numbers."""
    job(town, template, parallelism=2, completions=2, backoffLimit=1)
    town.finish(town.names()[0], "Failed", 1)
    town.advance(10)
    assert ended(town) == ("", "")
    town.finish(town.names()[0], "Failed", 1)
    assert ended(town) == ("Failed", "BackoffLimitExceeded")
    message = town.condition("Job", "j", "Failed")["message"]
    assert message == "Job has reached the specified backoff limit of 1: 2 pods failed, 0 restarts"
    assert town.names() == []
    assert "completionTime" not in town.status("Job", "j")


def test_failures_are_counted_once_even_over_a_restart_and_when_pods_are_deleted(town: Any, template: Any) -> None:
    job(town, template, backoffLimit=2)
    town.finish(town.names()[0], "Failed", 1)
    town.restart()
    town.react()
    assert counts(town)[2] == 1
    town.delete("Pod", town.pods()[0].name)
    town.finish(town.names()[0], "Failed", 1)
    assert counts(town)[2] == 2


def test_an_evicted_pod_is_no_failure_and_is_replaced_at_once(town: Any, template: Any) -> None:
    job(town, template, backoffLimit=0)
    gone = town.names()[0]
    town.evict(gone)
    assert counts(town) == (1, 0, 0)
    assert town.names() != [gone]


def test_with_replacement_policy_failed_a_pod_on_its_way_out_is_waited_for(town: Any, template: Any) -> None:
    town.node("n")
    job(town, template, podReplacementPolicy="Failed")
    town.delete("Pod", town.names()[0])
    assert town.names() == [] and town.status("Job", "j")["terminating"] == 1
    town.cluster.gone(town.pods()[0])
    town.react()
    assert len(town.names()) == 1


def test_containers_started_again_in_place_count_towards_the_limit(town: Any, template: Any) -> None:
    town.apply("Job", "j", {"backoffLimit": 2, "template": template(restartPolicy="OnFailure")})
    pod = town.live()[0]
    for restarts, end in ((1, ""), (2, "BackoffLimitExceeded")):
        town.cluster.set_status(pod, {"containerStatuses": [{"name": "c", "restartCount": restarts}]})
        town.react()
        assert ended(town)[1] == end


def test_the_deadline_ends_a_job_and_counts_from_its_start(town: Any, template: Any) -> None:
    job(town, template, activeDeadlineSeconds=60)
    town.advance(59)
    assert len(town.names()) == 1
    town.advance(1)
    assert ended(town) == ("Failed", "DeadlineExceeded")
    assert town.names() == []


def test_a_finished_job_goes_when_its_time_to_live_is_over(town: Any, template: Any) -> None:
    job(town, template, ttlSecondsAfterFinished=100)
    town.advance(50)
    town.finish(town.names()[0])
    town.restart()
    town.advance(99)
    assert len(town.pods()) == 1
    town.advance(1)
    assert town.pods() == [] and not town.cluster.store.of_kind("Job.batch")


def test_a_suspended_job_has_no_pods_and_its_deadline_begins_anew(town: Any, template: Any) -> None:
    job(town, template, activeDeadlineSeconds=60, parallelism=2, completions=2)
    town.advance(50)
    job(town, template, activeDeadlineSeconds=60, parallelism=2, completions=2, suspend=True)
    assert town.names() == []
    suspended = town.condition("Job", "j", "Suspended")
    assert (suspended["status"], suspended["reason"]) == ("True", "JobSuspended")
    town.advance(100)
    job(town, template, activeDeadlineSeconds=60, parallelism=2, completions=2)
    assert len(town.names()) == 2
    assert town.condition("Job", "j", "Suspended")["status"] == "False"
    town.advance(59)
    assert ended(town) == ("", "")
    town.advance(1)
    assert ended(town) == ("Failed", "DeadlineExceeded")
    assert counts(town)[2] == 0


def test_a_job_of_another_manager_is_left_alone(town: Any, template: Any) -> None:
    job(town, template, managedBy="kueue.x-k8s.io/multikueue")
    assert town.pods() == []


def test_lowering_parallelism_gives_pods_up(town: Any, template: Any) -> None:
    job(town, template, parallelism=4, completions=4)
    job(town, template, parallelism=1, completions=4)
    assert len(town.names()) == 1


# -- indexed ----------------------------------------------------------------------------------------------------------


def indexed(town: Any, template: Any, **spec: Any) -> None:
    job(town, template, completionMode="Indexed", **spec)


def working_on(town: Any) -> list[int]:
    return sorted(int(pod.annotations["batch.kubernetes.io/job-completion-index"]) for pod in town.live())


def pod_of(town: Any, index: int) -> str:
    return next(pod.name for pod in town.live() if pod.labels["batch.kubernetes.io/job-completion-index"] == str(index))


def test_each_pod_of_an_indexed_job_has_a_number_in_name_host_label_and_environment(town: Any, template: Any) -> None:
    indexed(town, template, parallelism=2, completions=3)
    assert working_on(town) == [0, 1]
    pod = town.read("Pod", pod_of(town, 1))
    assert pod.name.startswith("j-1-") and pod.spec["hostname"] == "j-1"
    assert environment(pod.manifest(), "c").variables["JOB_COMPLETION_INDEX"] == "1"


def test_numbers_are_worked_on_until_each_has_succeeded(town: Any, template: Any) -> None:
    """A failed number is tried again; the status lists the finished ones."""
    indexed(town, template, parallelism=2, completions=4)
    town.finish(pod_of(town, 1))
    town.finish(pod_of(town, 0), "Failed", 1)
    assert town.status("Job", "j")["completedIndexes"] == "1"
    town.advance(10)
    assert working_on(town) == [0, 2]
    for index in (0, 2, 3):
        town.finish(pod_of(town, index))
    assert town.status("Job", "j")["completedIndexes"] == "0-3"
    assert ended(town) == ("Complete", "CompletionsReached")


def test_with_a_limit_for_each_number_the_others_go_on(town: Any, template: Any) -> None:
    """Number 0 fails twice with one retry allowed; number 1 succeeds; the Job has failed for its failed number."""
    indexed(town, template, parallelism=2, completions=2, backoffLimitPerIndex=1)
    town.finish(pod_of(town, 0), "Failed", 1)
    town.advance(10)
    town.finish(pod_of(town, 0), "Failed", 1)
    town.advance(100)
    assert working_on(town) == [1]
    assert town.status("Job", "j")["failedIndexes"] == "0"
    town.finish(pod_of(town, 1))
    assert ended(town) == ("Failed", "FailedIndexes")


def test_too_many_failed_numbers_end_the_job(town: Any, template: Any) -> None:
    indexed(town, template, parallelism=4, completions=4, backoffLimitPerIndex=0, maxFailedIndexes=1)
    town.finish(pod_of(town, 0), "Failed", 1)
    assert ended(town) == ("", "")
    town.finish(pod_of(town, 3), "Failed", 1)
    assert ended(town) == ("Failed", "MaxFailedIndexesExceeded")


def test_a_success_policy_ends_the_job_early(town: Any, template: Any) -> None:
    """One of the numbers 0 and 3 is enough."""
    rules = [{"succeededIndexes": "0,3", "succeededCount": 1}]
    indexed(town, template, parallelism=4, completions=4, successPolicy={"rules": rules})
    town.finish(pod_of(town, 1))
    assert ended(town) == ("", "")
    town.finish(pod_of(town, 3))
    assert ended(town) == ("Complete", "SuccessPolicy")
    assert town.condition("Job", "j", "SuccessCriteriaMet")["status"] == "True"
    assert town.names() == []


def test_pods_without_a_number_that_is_wanted_are_removed(town: Any, template: Any) -> None:
    indexed(town, template, parallelism=3, completions=3)
    indexed(town, template, parallelism=3, completions=2)
    assert working_on(town) == [0, 1]


# -- pod failure policy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "code", "end", "failed"),
    [
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, 42, "PodFailurePolicy", 1),
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, 1, "", 1),
        ({"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}, 1, "PodFailurePolicy", 1),
        ({"action": "FailJob", "onExitCodes": {"containerName": "d", "operator": "In", "values": [42]}}, 42, "", 1),
        ({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}, 42, "", 0),
        ({"action": "Count", "onExitCodes": {"operator": "In", "values": [42]}}, 42, "", 1),
    ],
)
def test_the_first_rule_that_matches_decides(
    town: Any, template: Any, rule: dict[str, Any], code: int, end: str, failed: int
) -> None:
    job(town, template, podFailurePolicy={"rules": [rule, {"action": "Count", "onPodConditions": DISRUPTED}]})
    town.finish(town.names()[0], "Failed", code)
    assert ended(town)[1] == end
    assert counts(town)[2] == failed


def test_an_ignored_failure_is_followed_at_once(town: Any, template: Any) -> None:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}
    job(town, template, podFailurePolicy={"rules": [rule]})
    town.finish(town.names()[0], "Failed", 42)
    assert len(town.names()) == 1


def test_a_rule_about_disruption_sees_evicted_pods(town: Any, template: Any) -> None:
    job(town, template, podFailurePolicy={"rules": [{"action": "FailJob", "onPodConditions": DISRUPTED}]})
    name = town.names()[0]
    town.evict(name)
    assert ended(town) == ("Failed", "PodFailurePolicy")
    told = f"Pod default/{name} has condition DisruptionTarget matching FailJob rule at index 0"
    assert town.condition("Job", "j", "Failed")["message"] == told


def test_a_number_can_be_given_up_by_rule(town: Any, template: Any) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    policy = {"rules": [rule]}
    indexed(town, template, parallelism=2, completions=2, backoffLimitPerIndex=5, podFailurePolicy=policy)
    town.finish(pod_of(town, 0), "Failed", 42)
    town.advance(600)
    assert working_on(town) == [1]


@given(st.sets(st.integers(0, 30)))
def test_indexes_are_read_as_they_are_written(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_indexes_are_written_as_kubernetes_does() -> None:
    assert format_indexes({0, 2, 3, 4, 7, 8}) == "0,2-4,7,8"


# -- cron -------------------------------------------------------------------------------------------------------------
