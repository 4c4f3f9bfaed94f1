"""A clock that follows the machine's time and never jumps."""

from hypothesis import given
from hypothesis import strategies as st

from chassis.clock import SteadyClock

HOUR_MS = 3_600_000


class Machine:
    """A machine whose time can be set."""

    def __init__(self) -> None:
        self.ticks, self.offset = 5_000, 1_700_000_000_000

    def wall(self) -> int:
        return self.ticks + self.offset

    def clock(self, base_ms: int = 0) -> SteadyClock:
        return SteadyClock(base_ms, self.wall, lambda: self.ticks)


def test_it_shows_the_machines_time_while_nobody_sets_that() -> None:
    machine = Machine()
    clock = machine.clock()
    for _ in range(1_000):
        machine.ticks += 37
        assert clock.now() == machine.wall()


def test_after_the_machines_time_was_set_it_catches_up_by_a_tenth_of_what_passes() -> None:
    machine = Machine()
    clock = machine.clock()
    began = clock.now()
    machine.offset += HOUR_MS
    assert clock.now() == began
    machine.ticks += HOUR_MS
    assert clock.now() == began + HOUR_MS + HOUR_MS // 10
    machine.ticks += 10 * HOUR_MS
    assert clock.now() == machine.wall()


def test_a_clock_with_the_base_of_another_agrees_with_it() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.offset -= 5 * HOUR_MS
    machine.ticks += 60_000
    assert machine.clock(clock.base).now() == clock.now()


@given(st.lists(st.tuples(st.integers(-9 * HOUR_MS, 9 * HOUR_MS), st.integers(0, 100_000)), max_size=30))
def test_what_passes_is_right_within_a_tenth_whatever_is_set(steps: list[tuple[int, int]]) -> None:
    machine = Machine()
    clock = machine.clock()
    for jump, passed in steps:
        before, ticks = clock.now(), machine.ticks
        machine.offset += jump
        for _ in range(3):
            machine.ticks += passed // 3
            clock.now()
        shown, real = clock.now() - before, machine.ticks - ticks
        assert abs(shown - real) <= real / 10 + 1 and shown >= 0
