"""EASY backfill: whoever has waited long at the head of a queue gets its room; those behind may pass if they do not delay it."""

from typing import Any

from gang_scheduler.domain.core import SchedulerCore
from kube import Event, rfc3339

MINUTE = 60_000
ESTIMATE = "tidegate.dev/running-estimate"


def running(toy: Any, name: str, node: str, cpu: int, ends_in: int | None) -> None:
    """A pod that started now and says how many minutes it will run."""
    marks = {ESTIMATE: f"{ends_in}m"} if ends_in else {}
    toy.pods(name, cpu=cpu, node=node, annotations=marks)
    pod = toy.pod(name)
    toy.fold([toy.store.put(pod.changed(status={**pod.status, "startTime": rfc3339(toy.now)}))])


def wait(toy: Any, minutes: int) -> None:
    toy.now += minutes * MINUTE
    toy.settle()


def stage(toy: Any, ends_in: int | None = None) -> None:
    """A node of four cpus, three in use; large needs all four and has waited for six minutes."""
    toy.node("n", cpu=4)
    running(toy, "busy", "n", 3, ends_in)
    toy.pods("large", cpu=4)
    toy.settle()
    wait(toy, 6)


def test_the_core_wakes_when_the_head_has_waited_five_minutes(toy: Any) -> None:
    toy.node("n", cpu=1)
    toy.pods("busy", cpu=1, node="n")
    assert toy.core.deadline() is None
    toy.pods("head", cpu=1)
    toy.settle()
    assert toy.core.deadline() == toy.now + 5 * MINUTE


def test_before_that_a_small_job_passes(toy: Any) -> None:
    toy.node("n", cpu=4)
    running(toy, "busy", "n", 3, None)
    toy.pods("large", cpu=4)
    toy.settle()
    toy.pods("small", cpu=1)
    wait(toy, 4)
    assert toy.where("small") == "n"


def test_room_of_the_head_is_not_given_away(toy: Any) -> None:
    stage(toy)
    toy.pods("small", cpu=1)
    toy.settle()
    assert toy.where("small") == ""
    assert "room is reserved for large, waiting at the head of the queue" in toy.message("small")
    toy.delete(toy.pod("busy").key)
    toy.settle()
    assert (toy.where("large"), toy.where("small")) == ("n", "")


def test_who_ends_before_the_head_can_start_may_pass(toy: Any) -> None:
    """Busy ends in 24 minutes from now: ten minutes are short enough, an hour is not."""
    stage(toy, ends_in=30)
    toy.pods("long", cpu=1, annotations={ESTIMATE: "1h"})
    toy.pods("short", cpu=1, annotations={ESTIMATE: "10m"})
    toy.settle()
    assert (toy.where("long"), toy.where("short")) == ("", "n")


def test_a_job_of_higher_priority_is_not_behind_the_head(toy: Any) -> None:
    stage(toy)
    toy.pods("urgent", cpu=1, priority=9)
    toy.settle()
    assert toy.where("urgent") == "n"


def test_the_time_at_the_head_survives_a_restart(toy: Any) -> None:
    toy.node("n", cpu=4)
    running(toy, "busy", "n", 3, None)
    toy.pods("large", cpu=4)
    toy.settle()
    toy.now += 6 * MINUTE
    remembered = toy.core.remember()
    toy.core = SchedulerCore()
    toy.core.restore(remembered)
    toy.fold([Event(None, item) for item in toy.store.objects.values()])
    toy.entitle()
    toy.settle()
    toy.pods("small", cpu=1)
    toy.settle()
    assert toy.where("small") == ""


def test_a_head_that_can_never_fit_does_not_stop_anybody(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("huge", cpu=9)
    toy.settle()
    wait(toy, 10)
    toy.pods("small", cpu=4)
    toy.settle()
    assert toy.where("small") == "n"


def test_a_head_whose_queue_is_full_keeps_room_of_its_queue_and_none_of_others(toy: Any) -> None:
    toy.queues = {"q": {"capability": {"cpu": 4}}, "other": {}}
    toy.node("n", cpu=8)
    toy.pods("busy", cpu=3, node="n", queue="q")
    toy.pods("large", cpu=4, queue="q")
    toy.settle()
    wait(toy, 6)
    toy.pods("small", cpu=1, queue="q")
    toy.pods("elsewhere", cpu=5, queue="other")
    toy.settle()
    assert (toy.where("small"), toy.where("elsewhere")) == ("", "n")


def test_without_backfill_nothing_is_reserved(new_toy: Any) -> None:
    toy = new_toy(core=SchedulerCore(backfill=False))
    stage(toy)
    toy.pods("small", cpu=1)
    toy.settle()
    assert toy.where("small") == "n"
    assert toy.core.deadline() is None


def test_room_that_is_reserved_stays_so_after_a_restart(toy: Any) -> None:
    """Nobody slips in between: the first pass after it honours what was reserved before it."""
    toy.node("n", cpu=4)
    running(toy, "busy", "n", 3, None)
    toy.pods("large", cpu=4)
    toy.settle()
    toy.now += 6 * MINUTE
    toy.settle()
    remembered = toy.core.remember() or toy.core._remembered
    reserved = [(claim.unit, claim.places) for claim in toy.core.claims.reservations.values()]
    assert len(reserved) == 1
    toy.core = SchedulerCore()
    toy.core.restore(remembered)
    toy.fold([Event(None, item) for item in toy.store.objects.values()])
    toy.pods("small", cpu=1)
    toy.entitle()
    toy.settle()
    assert toy.where("small") == ""
    assert [(claim.unit, claim.places) for claim in toy.core.claims.reservations.values()] == reserved


def test_the_room_of_the_head_is_where_room_comes_last(toy: Any) -> None:
    """Two of three nodes are needed, two come free in half an hour, one is free: that one serves others for as long as they like."""
    for name in ("n0", "n1", "n2"):
        toy.node(name, cpu=4)
    for name in ("n1", "n2"):
        running(toy, f"busy-{name}", name, 3, 40)
    toy.group("large", 2)
    toy.pods("large", 2, cpu=4, group="large")
    toy.settle()
    wait(toy, 6)
    toy.pods("long", cpu=4, annotations={ESTIMATE: "9h"})
    toy.settle()
    assert toy.where("long") == "n0"
    toy.delete(toy.pod("busy-n1").key, toy.pod("busy-n2").key)
    toy.settle()
    assert sorted(toy.where(f"large-{number}") for number in range(2)) == ["n1", "n2"]


def test_the_longest_known_run_is_time_for_others_though_another_is_unknown(toy: Any) -> None:
    """The head needs the room of both: it cannot start before the one of them that says how long it runs has ended."""
    toy.node("n", cpu=4)
    running(toy, "known", "n", 1, 30)
    running(toy, "silent", "n", 2, None)
    toy.pods("large", cpu=4)
    toy.settle()
    wait(toy, 6)
    toy.pods("long", cpu=1, annotations={ESTIMATE: "1h"})
    toy.pods("short", cpu=1, annotations={ESTIMATE: "10m"})
    toy.settle()
    assert (toy.where("long"), toy.where("short")) == ("", "n")
