"""Times and durations."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import parse_duration, parse_time, rfc3339, rfc3339_micro

moments = st.integers(-(10**12), 4 * 10**12)


@given(moments)
def test_a_time_reads_back_to_the_second_and_a_micro_time_exactly(now: int) -> None:
    assert parse_time(rfc3339(now)) == now // 1000 * 1000
    assert parse_time(rfc3339_micro(now)) == now


@given(moments)
def test_times_are_ordered_as_their_texts(now: int) -> None:
    assert rfc3339_micro(now) < rfc3339_micro(now + 1)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.500Z", -500),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600_000),
        ("2026-01-01T00:00:00.123456789Z", 1_767_225_600_123),
        ("2026-01-01T00:00:00.1Z", 1_767_225_600_100),
    ],
)
def test_known_times(text: str, moment: int) -> None:
    assert parse_time(text) == moment


@pytest.mark.parametrize("text", ["", "now", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "12:00Z"])
def test_what_is_no_time_with_a_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)


def test_the_year_begins_in_utc() -> None:
    assert rfc3339(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)) == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("500ms", 500),
        ("30s", 30_000),
        ("1h30m", 5_400_000),
        ("1h0m30s500ms", 3_630_500),
        ("1.5h", 5_400_000),
        ("0.25s", 250),
        (".5s", 500),
        ("1.s", 1_000),
        ("1.23456s", 1_234),
        ("1500us", 1),
        ("1500µs", 1),
        ("600us600us", 1),
        ("999999ns", 0),
        ("100h", 360_000_000),
    ],
)
def test_known_durations(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "s", ".s", "1d", "-1s", "1h 30m", "1s ", " 1s", "1.5", "1,5s", "1sm", "١s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_the_parts_of_a_duration_add_up(hours: int, minutes: int, seconds: int, milliseconds: int) -> None:
    total = ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
    assert parse_duration(f"{hours}h{minutes}m{seconds}s{milliseconds}ms") == total


def test_a_time_after_all_dates_is_told_as_the_last_one() -> None:
    assert rfc3339(10**18) == "9999-12-31T23:59:59Z"
