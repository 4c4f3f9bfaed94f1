"""What every bus does, run on the double and on the real server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bus import Bus, Entry, NoResponder, Parked, RequestFailed, StaleWriter


async def take(reader: AsyncIterator[list[Entry]], count: int) -> list[Entry]:
    found: list[Entry] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            found += await anext(reader)
    return found


async def test_entries_are_read_in_the_order_of_their_sequences(bus: Bus) -> None:
    log = bus.log("fact")
    for number in range(5):
        assert await log.append(b"%d" % number, expected=number, message_id=f"m{number}") == number + 1
    entries = await take(log.read(2), 3)
    assert [(entry.sequence, entry.payload) for entry in entries] == [(3, b"2"), (4, b"3"), (5, b"4")]
    assert await log.last() == 5


async def test_a_reader_gets_what_is_appended_after_it_began(bus: Bus) -> None:
    log = bus.log("fact")
    reader = log.read(0)
    waiting = asyncio.ensure_future(take(reader, 1))
    await asyncio.sleep(0.05)
    await log.append(b"x", expected=0, message_id="a", headers={"Kinds": "Pod"})
    (entry,) = await waiting
    assert (entry.sequence, entry.payload, entry.headers["Kinds"]) == (1, b"x", "Pod")


async def test_a_second_writer_is_refused(bus: Bus) -> None:
    log = bus.log("decision.gang_scheduler")
    await log.append(b"first", expected=0, message_id="a")
    with pytest.raises(StaleWriter) as caught:
        await log.append(b"second", expected=0, message_id="b")
    assert caught.value.last == 1


async def test_the_same_message_twice_is_one_entry(bus: Bus) -> None:
    log = bus.log("fact")
    assert await log.append(b"x", expected=0, message_id="same") == 1
    assert await log.append(b"x", expected=0, message_id="same") == 1
    assert await log.last() == 1


async def test_a_message_larger_than_a_part_is_one_entry(bus: Bus) -> None:
    log = bus.log("fact")
    large = bytes(range(256)) * 8192
    last = await log.append(large, expected=0, message_id="large")
    await log.append(b"small", expected=last, message_id="small")
    entries = await take(log.read(0), 2)
    assert [len(entry.payload) for entry in entries] == [len(large), 5]
    assert entries[0].payload == large
    assert entries[0].sequence == last
    with pytest.raises(StaleWriter):
        await log.append(large, expected=0, message_id="other")


async def test_a_large_message_is_found_whole_by_its_topic_and_by_its_sequence(bus: Bus) -> None:
    log = bus.log("decision.queue_manager")
    large = bytes(range(256)) * 8192
    first = await log.append(b"first", expected=0, message_id="first")
    last = await log.append(large, expected=first, message_id="large", topic="state")
    found = await log.last_of("state")
    assert found is not None and (found.sequence, found.payload == large) == (last, True)
    (entry,) = await take(log.read(last - 1), 1)
    assert (entry.sequence, entry.payload == large) == (last, True)
    await log.append(b"behind", expected=last, message_id="behind")
    assert [len(one.payload) for one in await take(log.read(last - 1), 2)] == [len(large), 6]


async def test_the_last_entry_of_a_topic_is_found(bus: Bus) -> None:
    log = bus.log("decision.queue_manager")
    assert await log.last_of("entitlements") is None
    await log.append(b"1", expected=0, message_id="a", topic="entitlements")
    await log.append(b"2", expected=1, message_id="b", topic="entitlements")
    await log.append(b"3", expected=2, message_id="c")
    found = await log.last_of("entitlements")
    assert found is not None
    assert (found.sequence, found.payload) == (2, b"2")
    assert [entry.payload for entry in await take(log.read(0), 3)] == [b"1", b"2", b"3"]


async def test_snapshots_are_found_by_the_sequence_they_stand_for(bus: Bus) -> None:
    log = bus.log("fact")
    assert await log.snapshot() is None
    await log.put_snapshot(10, b"ten" * 100_000)
    await log.put_snapshot(20, b"twenty")
    assert await log.snapshot() == (20, b"twenty")
    assert await log.snapshot(at_most=15) == (10, b"ten" * 100_000)
    assert await log.snapshot(at_most=5) is None


async def test_a_trimmed_log_goes_on_with_its_sequences(bus: Bus) -> None:
    log = bus.log("fact")
    for number in range(4):
        await log.append(b"x", expected=number, message_id=f"m{number}")
    await log.trim(3)
    assert (await log.first(), await log.last()) == (3, 4)
    assert [entry.sequence for entry in await take(log.read(0), 2)] == [3, 4]


@pytest.mark.parametrize("before", [-49_001, 0, 1])
async def test_nothing_is_older_than_the_beginning_of_a_log(bus: Bus, before: int) -> None:
    """A young log is kept whole, however far back its history is to reach."""
    log = bus.log("fact")
    for number in range(3):
        await log.append(b"x", expected=number, message_id=f"m{number}")
    await log.trim(before)
    assert (await log.first(), await log.last()) == (1, 3)


async def test_a_request_is_answered_by_who_serves_it(bus: Bus) -> None:
    async def twice(payload: bytes) -> bytes:
        return payload * 2

    async def fail(payload: bytes) -> bytes:
        raise ValueError("no such pod")

    serving = await bus.serve("tidegate.request.a.double", twice)
    await bus.serve("tidegate.request.a.fail", fail)
    assert await bus.request("tidegate.request.a.double", b"ab") == b"abab"
    with pytest.raises(RequestFailed, match="no such pod"):
        await bus.request("tidegate.request.a.fail", b"")
    await serving.stop()
    with pytest.raises(NoResponder):
        await bus.request("tidegate.request.a.double", b"ab")


async def test_of_a_value_the_newest_counts(bus: Bus) -> None:
    await bus.set_value("tidegate.assignment.n1", b"1")
    await bus.set_value("tidegate.assignment.n1", b"2")
    await bus.set_value("tidegate.assignment.n2", b"other")
    values = bus.values("tidegate.assignment.n1")
    async with asyncio.timeout(10):
        assert await anext(values) == b"2"
        later = asyncio.ensure_future(anext(values))
        await asyncio.sleep(0.01)
        await bus.set_value("tidegate.assignment.n1", b"3")
        assert await later == b"3"


async def test_a_lease_is_held_by_one_at_a_time(bus: Bus) -> None:
    first = await bus.lease("gang_scheduler", "a", 1.0)
    second = await bus.lease("gang_scheduler", "b", 1.0)
    await first.wait()
    waiting = asyncio.ensure_future(second.wait())
    await asyncio.sleep(0.5)
    assert not waiting.done()
    assert first.is_held() and not second.is_held()
    await first.release()
    async with asyncio.timeout(10):
        await waiting
    assert second.is_held() and not first.is_held()
    await second.release()


async def test_parked_messages_keep_their_error(bus: Bus) -> None:
    await bus.park(Parked(5, "gang_scheduler", "fact/7", "cannot decode", b"\x00\x01"))
    assert await bus.parked() == [Parked(5, "gang_scheduler", "fact/7", "cannot decode", b"\x00\x01")]


async def test_of_two_writers_at_once_one_is_refused(bus: Bus) -> None:
    log = bus.log("fact")
    tries = [log.append(b"%d" % number, expected=0, message_id=f"m{number}") for number in range(5)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(isinstance(result, StaleWriter) for result in results) == [False] + [True] * 4
    assert await log.last() == 1


async def test_every_reader_gets_everything(bus: Bus) -> None:
    log = bus.log("fact")
    readers = [asyncio.ensure_future(take(log.read(0), 200)) for _ in range(2)]
    for number in range(200):
        if number == 50:  # nobody has read further than the log goes
            readers.append(asyncio.ensure_future(take(log.read(50), 150)))
        await log.append(b"%d" % number, expected=number, message_id=f"m{number}")
    for reader, after in zip(readers, (0, 0, 50), strict=True):
        assert [entry.sequence for entry in await reader] == list(range(after + 1, 201))


async def test_what_a_trim_leaves_of_a_large_message_is_not_read(bus: Bus) -> None:
    """A reader sees it whole or not at all."""
    log = bus.log("fact")
    large = bytes(range(256)) * 8192
    last = await log.append(large, expected=0, message_id="large")
    small = await log.append(b"small", expected=last, message_id="small")
    await log.trim(last)
    reader = log.read(0)
    payloads = [entry.payload for entry in await take(reader, 1)]
    while payloads[-1] != b"small":
        payloads += [entry.payload for entry in await take(reader, 1)]
    assert payloads in ([b"small"], [large, b"small"])
    assert await log.last() == small


async def test_only_the_newest_snapshots_are_kept(bus: Bus) -> None:
    log = bus.log("fact")
    for sequence in range(1, 9):
        await log.put_snapshot(sequence, b"%d" % sequence)
    assert await log.snapshot() == (8, b"8")
    assert await log.snapshot(at_most=3) is None
    assert await bus.log("decision.gang_scheduler").snapshot() is None


async def test_what_is_told_reaches_all_who_listen(bus: Bus) -> None:
    heard: list[tuple[str, bytes]] = []
    everyone = await bus.listen("tidegate.heartbeat.*", lambda payload: heard.append(("all", payload)))
    await bus.listen("tidegate.heartbeat.n1", lambda payload: heard.append(("n1", payload)))
    await asyncio.sleep(0.05)
    await bus.publish("tidegate.heartbeat.n1", b"1")
    await bus.publish("tidegate.heartbeat.n2", b"2")
    await asyncio.sleep(0.1)
    assert sorted(heard) == [("all", b"1"), ("all", b"2"), ("n1", b"1")]
    await everyone.stop()
    await asyncio.sleep(0.05)
    await bus.publish("tidegate.heartbeat.n1", b"3")
    await asyncio.sleep(0.1)
    assert sorted(heard)[-1] == ("n1", b"3") and ("all", b"3") not in heard


async def test_a_value_that_was_taken_away_is_none(bus: Bus) -> None:
    await bus.set_value("tidegate.assignment.n1", b"1")
    await bus.set_value("tidegate.assignment.n1", b"")
    values = bus.values("tidegate.assignment.n1")
    waiting = asyncio.ensure_future(anext(values))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await bus.set_value("tidegate.assignment.n1", b"2")
    async with asyncio.timeout(10):
        assert await waiting == b"2"


@pytest.mark.parametrize("seconds", [0.2, 0.0])
async def test_who_asks_too_long_is_told_so(bus: Bus, seconds: float) -> None:
    async def sleep(payload: bytes) -> bytes:
        await asyncio.sleep(60)
        return payload

    serving = await bus.serve("tidegate.request.a.slow", sleep)
    with pytest.raises(RequestFailed, match="no answer"):
        await bus.request("tidegate.request.a.slow", b"", timeout=seconds)
    await serving.stop()
