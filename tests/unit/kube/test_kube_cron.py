"""Schedules: words, pauses, time zones, and what is due of what was missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import parse_time, rfc3339
from kube.cron import WORDS, Schedule, ScheduleError, run_name

NOW = parse_time("2026-07-01T00:00:00Z")
HOUR = 3_600_000


def times(schedule: Schedule, count: int, since: int = NOW) -> list[str]:
    """The next times, each counted from the one before."""
    found = []
    for _ in range(count):
        at = schedule.next_after(since, since)
        assert at is not None
        found.append(rfc3339(at))
        since = at
    return found


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("@yearly", "2027-01-01"), ("@annually", "2027-01-01"), ("@monthly", "2026-08-01"), ("@weekly", "2026-07-05"),
        ("@daily", "2026-07-02"), ("@midnight", "2026-07-02"),
    ],
)  # fmt: skip
def test_a_word_stands_for_an_expression(word: str, first: str) -> None:
    assert times(Schedule(word), 1) == [f"{first}T00:00:00Z"]


def test_hours_follow_each_other() -> None:
    assert set(WORDS) >= {"@hourly"}
    assert times(Schedule("@hourly"), 2) == ["2026-07-01T01:00:00Z", "2026-07-01T02:00:00Z"]


def test_a_pause_counts_from_what_was_served_last() -> None:
    born = parse_time("2026-07-01T00:00:17Z")
    assert times(Schedule("@every 1h30m"), 2, born) == ["2026-07-01T01:30:17Z", "2026-07-01T03:00:17Z"]
    assert times(Schedule("@every 1m30.9s"), 1, born) == ["2026-07-01T00:01:47Z"]
    assert times(Schedule("@every 10ms"), 1, born) == ["2026-07-01T00:00:18Z"]


def test_of_what_was_missed_the_newest_is_due() -> None:
    assert Schedule("@hourly").due(NOW, NOW + 5 * HOUR + 1) == NOW + 5 * HOUR
    assert Schedule("@every 2h").due(NOW, NOW + 5 * HOUR) == NOW + 4 * HOUR
    assert Schedule("@every 2h").due(NOW, NOW + 2 * HOUR - 1) is None
    assert Schedule("@daily").due(NOW, NOW) is None


def test_a_schedule_is_read_in_its_own_time_zone() -> None:
    assert times(Schedule("0 9 * * ?", "Asia/Tokyo"), 1) == ["2026-07-02T00:00:00Z"]
    assert Schedule("@daily").due(NOW - 1, NOW) == NOW


@pytest.mark.parametrize(
    ("night", "run"),
    [("2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00"), ("2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00")],
)
def test_a_time_that_a_change_of_clocks_skips_or_repeats_comes_once(night: str, run: str) -> None:
    schedule, before = Schedule("30 2 * * *", "Europe/Berlin"), parse_time(night)
    first = schedule.next_after(before, before)
    assert first is not None and schedule.written(first) == run
    after = schedule.next_after(first, first)
    assert after is not None and after - first > 20 * HOUR
    assert schedule.due(before, after - 1) == first


@pytest.mark.parametrize(
    ("expression", "zone"),
    [("every day", ""), ("0 9 * * *", "Mars/Olympus"), ("@every soon", ""), ("@every -5m", ""), ("@often", "")],
)
def test_a_schedule_of_no_sense_says_so(expression: str, zone: str) -> None:
    with pytest.raises(ScheduleError, match=expression.replace("*", r"\*")):
        Schedule(expression, zone).check()


def test_runs_of_one_minute_have_names_of_their_own() -> None:
    assert run_name("c", NOW) == f"c-{NOW // 60_000}"
    names = {run_name("c", NOW + second * 1000) for second in range(60)}
    assert len(names) == 60 and max(map(len, names)) <= len("c") + 11


@given(st.integers(1, 300), st.integers(0, 2_000), st.integers(0, 999))
def test_pauses_are_those_that_one_counts_one_by_one(seconds: int, later: int, fraction: int) -> None:
    schedule, now = Schedule(f"@every {seconds}s"), NOW + later * 1000 + fraction
    passed = [at for at in range(NOW, now + seconds * 1000 + 1, seconds * 1000) if NOW < at <= now]
    assert schedule.due(NOW, now) == (passed[-1] if passed else None)
    assert schedule.next_after(NOW, now) == (passed[-1] if passed else NOW) + seconds * 1000
