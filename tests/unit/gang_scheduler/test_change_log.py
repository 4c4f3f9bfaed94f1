"""The log of changed slots: what it tells of them is what a list of all of them would, as long as it has not forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from gang_scheduler.domain.columns.vectors import ChangeLog

LIMIT = 128
STEPS = st.lists(st.one_of(st.lists(st.integers(0, 9), max_size=90), st.none()), max_size=12)


@given(steps=STEPS)
def test_a_reader_is_told_what_changed_since_or_that_this_was_forgotten(steps: list[list[int] | None]) -> None:
    log = ChangeLog(limit=LIMIT)
    written: list[int] = []
    readers = [(0, 0)]
    for step in steps:
        for slot in step or ():
            log.add(slot)
            written.append(slot)
        if step is None:
            log.forget()
            readers = [(position, -1) for position, _ in readers]
        for position, count in readers:
            entries, changed = log.entries(position), log.since(position)
            if entries is None or changed is None:
                assert entries is changed is None
                assert count < 0 or len(written) - count > LIMIT // 2
            else:
                assert entries.tolist() == written[count:]
                assert sorted(changed) == sorted(set(written[count:]))
        readers.append((log.end, len(written)))


def test_a_reader_that_is_not_far_behind_is_always_told() -> None:
    log = ChangeLog(limit=LIMIT)
    for number in range(10 * LIMIT):
        log.add(number)
        assert log.since(max(0, log.end - LIMIT // 2)) is not None
