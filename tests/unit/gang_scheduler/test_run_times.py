"""How long work is expected to run: what its owner says, else what was learned from runs before it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.pods.run_history import RunHistory, length_of, step_of
from kube import Event, from_manifest, rfc3339

MINUTE = 60_000
START = 1_767_225_600_000


def run_of(job: str, minutes: int) -> Any:
    """A pod of ``job`` that has just succeeded after so many minutes."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    metadata = {"name": f"{job}-x", "namespace": "default", "ownerReferences": [owner]}
    status = {"phase": "Succeeded", "startTime": rfc3339(START)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status}
    return from_manifest(pod), START + minutes * MINUTE


def test_the_runs_of_a_cron_job_tell_of_the_next_one() -> None:
    history = RunHistory()
    history.note(*run_of("nightly-29384720", 20))
    pod, _ = run_of("nightly-29386160", 0)
    assert 20 * MINUTE <= (history.length_ms(pod) or 0) <= 24 * MINUTE


def test_a_longer_run_raises_the_estimate_at_once_and_a_shorter_one_lowers_it_by_and_by() -> None:
    history = RunHistory()
    lengths = []
    for minutes in (10, 60, 10, 10, 10, 10):
        pod, now = run_of("again", minutes)
        history.note(pod, now)
        lengths.append(history.length_ms(pod) or 0)
    assert lengths[1] >= 60 * MINUTE
    assert lengths[1:] == sorted(lengths[1:], reverse=True)
    assert lengths[-1] < 20 * MINUTE


def test_what_is_remembered_is_bounded_and_the_least_recent_goes_first() -> None:
    history = RunHistory()
    for number in range(600):
        history.note(*run_of(f"job{number}", 1))
    assert len(history.steps) == 512
    assert history.length_ms(run_of("job0", 0)[0]) is None
    assert history.length_ms(run_of("job599", 0)[0]) is not None


@given(st.integers(1, 10**10))
def test_a_step_is_the_next_length_of_a_fifth_more_at_the_most(length: int) -> None:
    found = length_of(step_of(length))
    assert length <= found <= max(length * 6 // 5, 4)


def stage(toy: Any) -> None:
    """Four CPUs of which busy has three for half an hour; the big one waits at the head and has its room reserved."""
    toy.node("n", cpu=4)
    toy.pods("busy", cpu=3, node="n", annotations={"tidegate.dev/running-estimate": "30m"})
    pod = toy.pod("busy")
    toy.fold([toy.store.put(pod.changed(status={**pod.status, "startTime": rfc3339(toy.now)}))])
    toy.pods("big", cpu=4)
    toy.settle()
    toy.now += 6 * MINUTE
    toy.settle()


def once(toy: Any, name: str, minutes: int) -> None:
    """The bare pod ``name`` runs once, and is gone."""
    toy.node("elsewhere", cpu=1)
    toy.pods(name, cpu=1, node="elsewhere")
    pod = toy.pod(name)
    toy.fold([toy.store.put(pod.changed(status={**pod.status, "startTime": rfc3339(toy.now)}))])
    toy.now += minutes * MINUTE
    toy.finish(name)
    toy.delete(toy.pod(name).key)
    toy.delete(toy.store.objects[next(key for key in toy.store.objects if key.name == "elsewhere")].key)


def test_work_that_ran_before_may_pass_the_head_by_how_long_that_took(toy: Any) -> None:
    once(toy, "short", 5)
    once(toy, "long", 60)
    stage(toy)
    toy.pods("long", cpu=1)
    toy.pods("short", cpu=1)
    toy.settle()
    assert (toy.where("long"), toy.where("short")) == ("", "n")


def test_what_was_learned_survives_a_restart(toy: Any) -> None:
    once(toy, "short", 5)
    remembered = toy.core.remember()
    toy.core = SchedulerCore()
    toy.core.restore(remembered)
    toy.fold([Event(None, item) for item in toy.store.objects.values()])
    toy.entitle()
    stage(toy)
    toy.pods("short", cpu=1)
    toy.settle()
    assert toy.where("short") == "n"
    assert toy.core.remember() == toy.core.remember() or toy.core.remember() is None


def test_a_user_who_says_how_long_it_runs_is_believed(toy: Any) -> None:
    once(toy, "claims", 5)
    stage(toy)
    toy.pods("claims", cpu=1, annotations={"tidegate.dev/running-estimate": "2h"})
    toy.settle()
    assert toy.where("claims") == ""


def test_a_gang_whose_waiting_time_is_over_has_no_room_reserved(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("busy", cpu=3, node="n")
    toy.group("big", 2, annotations={"gang.scheduling.koordinator.sh/waiting-time": "10m"})
    toy.pods("big", 2, cpu=2, group="big")
    toy.settle()
    toy.now += 6 * MINUTE
    toy.settle()
    toy.pods("small", cpu=1)
    toy.settle()
    assert toy.where("small") == ""
    assert toy.core.deadline() is not None
    toy.now += 5 * MINUTE
    toy.settle()
    assert toy.where("small") == "n"
    assert "its waiting time was over" in toy.message("big-0")


def test_a_gang_that_may_not_be_passed_over_has_room_reserved_at_its_time(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("busy", cpu=3, node="n")
    toy.pods("head", cpu=4)
    toy.group("urgent", 2, annotations={"sla-waiting-time": "2m"})
    toy.pods("urgent", 2, cpu=2, group="urgent")
    toy.settle()
    toy.now += 3 * MINUTE
    toy.settle()
    toy.pods("xs", cpu=1)
    toy.settle()
    assert toy.where("xs") == ""
    assert "room is reserved for urgent" in toy.message("xs")
