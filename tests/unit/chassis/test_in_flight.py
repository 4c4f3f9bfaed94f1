"""Which subjects nothing new is decided on."""

from hypothesis import given
from hypothesis import strategies as st

from chassis.in_flight import FIRST_PAUSE_MS, FREE_TRIES, LONGEST_PAUSE_MS, InFlight
from kube import Decision, Key, Outcome

KEYS = [Key("Pod", "default", name) for name in "abc"]


def decision(key: Key) -> Decision:
    return Decision("Made", key)


def outcome(number: int, key: Key, applied: bool) -> Outcome:
    return Outcome(f"s/1/{number}", "Made", key, applied)


def test_two_decisions_on_one_subject_both_have_to_settle() -> None:
    flight = InFlight()
    flight.add("s/1/1", decision(KEYS[0]))
    flight.add("s/1/2", decision(KEYS[0]))
    assert flight.settle(outcome(1, KEYS[0], True), 0)
    assert KEYS[0] in flight and len(flight) == 1
    assert flight.settle(outcome(2, KEYS[0], True), 0)
    assert KEYS[0] not in flight and list(flight) == []


def test_an_outcome_counts_once_and_a_foreign_one_not_at_all() -> None:
    flight = InFlight()
    flight.add("s/1/1", decision(KEYS[0]))
    assert flight.settle(outcome(1, KEYS[0], False), 0)
    assert not flight.settle(outcome(1, KEYS[0], False), 0)
    assert not flight.settle(outcome(9, KEYS[1], False), 0)
    assert len(flight) == 0


def test_the_pauses_double_up_to_the_longest() -> None:
    flight, now, pauses = InFlight(), 1_000, []
    for number in range(FREE_TRIES + 8):
        flight.add(f"s/1/{number}", decision(KEYS[0]))
        flight.settle(outcome(number, KEYS[0], False), now)
        due = flight.deadline()
        pauses.append(due - now if due is not None else 0)
        if due is not None:
            assert not flight.wake(due - 1) and KEYS[0] in flight
            assert flight.wake(due) and KEYS[0] not in flight
            now = due
    assert pauses[: FREE_TRIES - 1] == [0] * (FREE_TRIES - 1)
    assert pauses[FREE_TRIES - 1 : FREE_TRIES + 1] == [FIRST_PAUSE_MS, FIRST_PAUSE_MS * 2]
    assert pauses[-1] == LONGEST_PAUSE_MS


steps = st.lists(st.tuples(st.sampled_from(["add", "settle", "wake"]), st.integers(0, 9), st.booleans()), max_size=40)


@given(steps)
def test_it_is_the_set_of_the_unsettled_and_the_resting(operations: list[tuple[str, int, bool]]) -> None:
    flight, open_ = InFlight(), dict[int, Key]()
    now = number = 0
    for what, pick, applied in operations:
        now += 70
        if what == "add":
            number += 1
            open_[number] = KEYS[pick % 3]
            flight.add(f"s/1/{number}", decision(open_[number]))
        elif what == "settle" and open_:
            chosen = sorted(open_)[pick % len(open_)]
            flight.settle(outcome(chosen, open_.pop(chosen), applied), now)
        elif what == "wake":
            flight.wake(now)
        assert set(open_.values()) <= set(flight)
        assert len(flight) == len(set(flight)) and all(key in flight for key in flight)
        due = flight.deadline()
        assert (set(flight) == set(open_.values())) or due is not None
    while (due := flight.deadline()) is not None:
        flight.wake(due)
    assert set(flight) == set(open_.values())
    assert flight | {KEYS[0]} == set(open_.values()) | {KEYS[0]}
