"""Volcano's revocable zones: nodes that are lent at some hours, and pods that leave them when the hours are over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.nodes.revocable_zones import DAY_MS, MINUTE_MS, windows_of

ZONE = "volcano.sh/revocable-zone"
LENT = {ZONE: "*"}
HOUR = 3_600_000
START = 1_767_225_600_000
"""Midnight."""


@pytest.fixture
def lent(new_toy: Any) -> Any:
    """A node that is lent from 8 to 20, at 9; and one that is not."""
    toy = new_toy(core=SchedulerCore(revocable_zones="day=08:00-20:00,night=22:00-06:00"))
    toy.node("lent", cpu=4, labels={ZONE: "day"})
    toy.node("own", cpu=4)
    toy.now = START + 9 * HOUR
    return toy


def ask(toy: Any, name: str, cpu: int = 1, annotations: Any = None, **parts: Any) -> str:
    """The node that a new pod gets."""
    toy.pods(name, cpu=cpu, annotations=annotations or {}, **parts)
    toy.settle()
    return str(toy.where(name))


def test_lent_nodes_are_for_pods_that_can_be_sent_away(lent: Any) -> None:
    assert ask(lent, "lasting", 3) == "own"
    assert ask(lent, "more", 3) == ""
    assert "untolerated taint {volcano.sh/revocable-zone: day}" in lent.message("more")
    assert ask(lent, "guest", annotations=LENT) == "lent"
    assert ask(lent, "preemptable", annotations={"volcano.sh/preemptable": "true"}) == "lent"
    assert ask(lent, "named", 2, annotations={ZONE: "day"}) == ""


def test_nobody_comes_out_of_hours(lent: Any) -> None:
    lent.now = START + 21 * HOUR
    assert ask(lent, "guest", annotations=LENT) == "own"
    assert ask(lent, "wide", 4, annotations=LENT) == ""
    assert "untolerated taint {volcano.sh/revocable-zone-closed: day}" in lent.message("wide")
    lent.now = START + 32 * HOUR
    lent.settle()
    assert lent.where("wide") == "lent"


def test_the_core_wakes_when_hours_begin_and_end(lent: Any) -> None:
    lent.settle()
    assert lent.core.deadline() == START + 20 * HOUR
    lent.now = START + 20 * HOUR
    lent.settle()
    assert lent.core.deadline() == START + 32 * HOUR


def test_guests_leave_one_by_one_when_the_hours_are_over(lent: Any) -> None:
    lent.group("g", 1)
    lent.pods("w", 4, group="g", cpu=1, annotations=LENT)
    lent.settle()
    assert {lent.where(f"w-{at}") for at in range(4)} == {"lent"}
    lent.lingering = True
    for minute, gone in enumerate((1, 2, 3)):
        lent.now = START + 20 * HOUR + minute * MINUTE_MS
        lent.settle()
        assert len(set(lent.evicted)) == gone
        lent.now += MINUTE_MS // 2
        lent.settle()
        assert len(set(lent.evicted)) == gone
        lent.gone(*set(lent.evicted) & {pod.name for pod in lent.store.of_kind("Pod").values()})
    lent.now += MINUTE_MS
    lent.settle()
    assert len(set(lent.evicted)) == 4, "the last one is the minimum, and goes whole"


def test_a_gang_that_can_spare_nobody_goes_whole(lent: Any) -> None:
    lent.group("g", 3)
    lent.pods("w", 3, group="g", cpu=2, annotations=LENT)
    lent.settle()
    assert sorted(lent.where(f"w-{at}") for at in range(3)) == ["lent", "lent", "own"]
    lent.now = START + 20 * HOUR
    (decision,) = [one for one in lent.settle() if one.name == "ZoneCleared"]
    assert sorted(lent.evicted) == ["w-0", "w-1", "w-2"]
    assert decision.message == "3 pods of g are evicted: the hours of revocable zone day are over"


@pytest.mark.parametrize(
    ("budget", "gone"),
    [
        ({"volcano.sh/jdb-max-unavailable": "2"}, 2),
        ({"volcano.sh/jdb-max-unavailable": "50%"}, 2),
        ({"volcano.sh/jdb-min-available": "1"}, 3),
        ({"volcano.sh/jdb-min-available": "100%"}, 0),
        ({}, 4),
    ],
)
def test_budgets_of_jobs_say_how_many_may_go_at_once(lent: Any, budget: dict[str, str], gone: int) -> None:
    lent.group("g", 4, annotations=budget)
    lent.pods("w", 4, group="g", cpu=1, annotations=LENT)
    lent.settle()
    lent.lingering, lent.now = True, START + 20 * HOUR
    lent.settle()
    assert len(lent.evicted) == gone


def test_who_is_never_evicted_stays(lent: Any) -> None:
    assert ask(lent, "stays", annotations={**LENT, "volcano.sh/preemptable": "false"}) == "lent"
    lent.now = START + 20 * HOUR
    lent.settle()
    assert lent.evicted == []


def test_a_successor_keeps_to_the_rounds(lent: Any) -> None:
    lent.group("g", 0)
    lent.pods("w", 2, group="g", cpu=1, annotations=LENT)
    lent.settle()
    lent.lingering, lent.now = True, START + 20 * HOUR
    lent.settle()
    successor = SchedulerCore(revocable_zones=lent.core.revocable_zones)
    remembered = lent.core.remember() or lent.core._remembered
    successor.restore(remembered)
    assert successor.clearing.last == lent.now


def test_without_hours_the_label_means_nothing(toy: Any) -> None:
    toy.node("n", cpu=4, labels={ZONE: "day"})
    assert ask(toy, "p") == "n"


@pytest.mark.parametrize("text", ["day", "day=8:00-20:00", "day=08:00-25:00", "=08:00-20:00", "day=08:60-20:00"])
def test_hours_that_cannot_be_read_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="revocable zones"):
        windows_of(text)


@given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 3 * DAY_MS))
def test_a_window_changes_exactly_when_it_says(start: int, end: int, now: int) -> None:
    text = f"z={start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"
    window = windows_of(text)["z"]
    minute = now % DAY_MS / MINUTE_MS
    inside = start <= minute < end if start < end else minute >= start or minute < end
    assert window.open_at(now) == inside
    change = window.next_change(now)
    assert now < change <= now + DAY_MS
    assert window.open_at(change - 1) == window.open_at(now)
    assert start == end or window.open_at(change) != window.open_at(now)


def test_pods_that_can_be_sent_away_come_last_and_make_room_for_all_others(lent: Any) -> None:
    """On nodes that are not lent, whatever their priority; the reason names the priority that they state."""
    lent.now = START + 21 * HOUR
    assert ask(lent, "guest", 4, annotations=LENT, priority=90) == "own"
    lent.pods("waiting", cpu=4, annotations=LENT, priority=100)
    lent.settle()
    assert ask(lent, "plain", 4, priority=1) == "own"
    assert lent.evicted == ["guest"]
    assert lent.where("waiting") == ""


def test_pods_that_can_be_sent_away_preempt_nobody(lent: Any) -> None:
    lent.now = START + 21 * HOUR
    assert ask(lent, "guest", 4, annotations=LENT, priority=1) == "own"
    assert ask(lent, "other", 4, annotations=LENT, priority=100) == ""
    assert lent.evicted == []


def test_without_hours_the_mark_of_a_zone_changes_no_priority(new_toy: Any) -> None:
    toy = new_toy()
    toy.node("own", cpu=4)
    assert ask(toy, "guest", 4, annotations=LENT, priority=90) == "own"
    assert ask(toy, "plain", 4, priority=1) == ""
