"""A controller that starts again at any moment does what one would have done that never stopped."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Make = Callable[..., Any]
Job = Callable[..., str]

POLICIES = "[{event: PodFailed, action: RestartPod}, {event: PodEvicted, action: RestartJob}]"


@pytest.mark.parametrize("replay", [0, 1, 3, 5, 8, 13, 21])
def test_an_edge_that_was_dealt_with_is_not_dealt_with_again(make_cluster: Make, job: Job, replay: int) -> None:
    cluster = make_cluster(termination="5s")
    cluster.apply(job(maxRetry=9, policies=POLICIES))
    cluster.delete("Pod/j-w-0")
    cluster.advance("5s")
    cluster.pods_become(**{"j-w-1": "Failed"})
    cluster.advance("5s")
    before = cluster.get("Job/j").status["retryCount"]
    cluster.restart(replay=min(replay, len(cluster.log)))
    cluster.advance("1m")
    assert cluster.get("Job/j").status["retryCount"] == before == 2
    assert cluster.phase("Job/j") == "Running"


def test_an_eviction_that_nobody_has_dealt_with_is_found_in_the_log(make_cluster: Make, job: Job) -> None:
    """The controller dies between the fact and its decision."""
    cluster = make_cluster(termination="5s")
    cluster.apply(job(policies=POLICIES))
    core, cluster.core = cluster.core, make_cluster().core
    cluster.delete("Pod/j-w-0")
    assert core is not cluster.core
    cluster.restart(replay=1)
    assert cluster.get("Job/j").status["retryCount"] == 1


def test_an_eviction_is_found_in_a_snapshot_while_the_pod_is_going(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(termination="5s")
    cluster.apply(job(policies=POLICIES))
    cluster.core = make_cluster().core
    cluster.delete("Pod/j-w-0")
    cluster.restart()
    assert cluster.get("Job/j").status["retryCount"] == 1


def test_an_eviction_whose_decision_was_refused_is_not_lost(cluster: Any, job: Job) -> None:
    cluster.apply(job(policies=POLICIES))
    answers = ["j-w-1 changed meanwhile"]
    cluster.refuse = lambda decision: answers.pop() if answers and decision.name == "JobRestarted" else None
    cluster.delete("Pod/j-w-0")
    assert cluster.said().count("JobRestarted") == 2
    assert cluster.get("Job/j").status["retryCount"] == 1


def test_an_eviction_after_the_decision_about_another_is_dealt_with_next(cluster: Any, job: Job) -> None:
    """The second pod goes while the decision about the first is on its way."""
    policies = "[{event: PodEvicted, action: RestartPod}]"
    cluster.apply(job(tasks="{name: w, replicas: 3}", maxRetry=9, policies=policies))
    cluster._change(cluster._delete(cluster.key("Pod/j-w-0")))
    (decision,) = cluster.core.decide(cluster.now, frozenset())
    cluster._change(cluster._delete(cluster.key("Pod/j-w-1")))
    cluster._carry_out(decision)
    cluster.settle()
    assert cluster.get("Job/j").status["retryCount"] == 2
    assert set(cluster.pods().values()) == {"Running"}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("phase"), st.integers(0, 3), st.sampled_from(["Failed", "Succeeded", "Running"])),
        st.tuples(st.just("delete"), st.integers(0, 3), st.just("")),
        st.tuples(st.just("scale"), st.integers(1, 4), st.just("")),
        st.tuples(st.just("advance"), st.integers(1, 20), st.just("")),
        st.tuples(st.just("restart"), st.integers(0, 6), st.just("")),
        st.tuples(st.just("command"), st.integers(0, 9), st.sampled_from(["AbortJob", "ResumeJob", "RestartJob"])),
    ),
    max_size=12,
)


def _step(cluster: Any, job: Job, step: tuple[str, int, str]) -> None:
    what, number, word = step
    if what == "phase" and cluster.pods().get(f"j-w-{number}") in ("Pending", "Running"):
        cluster.pods_become(**{f"j-w-{number}": word})
    elif what == "delete" and cluster.has(f"Pod/j-w-{number}"):
        cluster.delete(f"Pod/j-w-{number}")
    elif what == "scale":
        cluster.apply(job(tasks=f"{{name: w, replicas: {number}}}", minAvailable=1, policies=POLICIES, maxRetry=5))
    elif what == "advance":
        cluster.advance(f"{number}s")
    elif what == "restart":
        cluster.restart(replay=min(number, len(cluster.log)))
    elif what == "command":
        target = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j}"
        cluster.apply(f"{{kind: Command, metadata: {{name: c{number}}}, action: {word}, target: {target}}}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_a_job_comes_to_rest_in_a_state_that_makes_sense(
    make_cluster: Make, job: Job, steps: list[tuple[str, int, str]]
) -> None:
    cluster = make_cluster(termination="5s")
    cluster.apply(job(tasks="{name: w, replicas: 3}", minAvailable=1, policies=POLICIES, maxRetry=5))
    for step in steps:
        _step(cluster, job, step)
    cluster.advance("10m")
    assert cluster.said().count("JobRestarted") <= cluster.get("Job/j").status["retryCount"]
    status, replicas = cluster.get("Job/j").status, cluster.get("Job/j").spec["tasks"][0]["replicas"]
    phase, pods = status["state"]["phase"], cluster.pods()
    assert phase in ("Running", "Completed", "Failed", "Aborted")
    assert status["retryCount"] <= 5 + len(steps)
    if phase == "Running":
        assert len(pods) == replicas
    else:
        assert set(pods.values()) <= {"Succeeded", "Failed"}
    before = len(cluster.decisions)
    cluster.restart()
    assert len(cluster.decisions) == before
