"""A gateway and a deciding service on a real bus, and what becomes of them when parts of it die."""

import asyncio
import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from chassis import Decider, Measures, Role, SystemClock, Workplace
from chassis.fact_fold import FactFold, load
from cluster_gateway.domain import ownership
from kube import Decision, Event, Key, Manifest, Mutation, Outcome, Store, Verb
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2

MAP = "ConfigMap"


class Labeller:
    """Labels every ConfigMap."""

    def __init__(self) -> None:
        self._plain: dict[Key, str] = {}

    def fold(self, events: Sequence[Event], now: int) -> None:
        for event in events:
            if event.key.kind == MAP:
                self._plain.pop(event.key, None)
                if event.new is not None and "done" not in event.new.labels:
                    self._plain[event.key] = event.new.uid

    def hear(self, service: str, decision: Decision) -> None:
        """Nobody else decides."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """The shell knows what is in flight."""

    def settle(self, outcome: Outcome) -> None:
        """What was applied was folded."""

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        patch: Manifest = {"metadata": {"labels": {"done": "yes"}}}
        return [
            Decision("MapLabelled", key, uid, mutations=(Mutation(Verb.PATCH, key, uid, patch=patch),))
            for key, uid in self._plain.items()
            if key not in in_flight
        ]

    def deadline(self) -> int | None:
        return None

    def query(self, name: str, arguments: Manifest) -> Manifest:
        return {}

    def check(self) -> list[str]:
        return []


@pytest.fixture(autouse=True)
def toy_may_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ownership._MAY, "toy", {Verb.PATCH: (MAP,)})


def make_maps(first: int, count: int, size: int = 10) -> Any:
    def make(cluster: Any) -> None:
        cluster.actor = "test"
        for number in range(first, first + count):
            cluster.create(Key(MAP, "default", f"m{number}"), {}, {"data": {"n": f"{number:0{size}d}"}}, {})

    return make


async def read_all(bus: Any) -> tuple[Store, list[Outcome], list[int]]:
    """What a fresh reader of the whole log knows."""
    log, store, outcomes, sequences = bus.log(subjects.FACTS), Store(), list[Outcome](), list[int]()
    goal, reader = await log.last(), log.read(0)
    async with asyncio.timeout(60):
        while not sequences or sequences[-1] < goal:
            for entry in await anext(reader):
                message = fact_pb2.ChangeSet.FromString(entry.payload)
                facts.fold(store, message, entry.sequence)
                outcomes += facts.outcomes(message)
                sequences.append(entry.sequence)
    await reader.aclose()
    return store, outcomes, sequences


async def decided(bus: Any) -> list[str]:
    """The ids of all decisions of the service."""
    log, ids, last = bus.log(subjects.decisions("toy")), list[str](), 0
    goal, reader = await log.last(), log.read(0)
    async with asyncio.timeout(60):
        while last < goal:
            for entry in await anext(reader):
                last = entry.sequence
                commit = decision_pb2.Commit.FromString(entry.payload)
                ids += [decision_id for decision_id, _ in decode_commit(commit)]
    await reader.aclose()
    return ids


async def until_labelled(gateway: Any, count: int) -> None:
    async with asyncio.timeout(60):
        while sum("done" in item.labels for item in gateway.local.store.of_kind(MAP).values()) < count:
            await asyncio.sleep(0.02)


def start_decider(town: Any, bus: Any) -> asyncio.Task[None]:
    decider = Decider(Role("toy"), Labeller, Workplace(bus, SystemClock(), Measures("toy"), holder="toy-1"))
    task = asyncio.create_task(decider.run())
    town.tasks.append(task)
    return task


def same(store: Store, gateway: Any) -> bool:
    def parts(found: Store) -> dict[Key, Any]:
        return {key: (item.uid, item.metadata, item.body, item.status) for key, item in found.objects.items()}

    return parts(store) == parts(gateway.local.store)


async def test_nothing_is_lost_when_the_server_dies_and_comes_back(town: Any) -> None:
    bus, other = await town.connect(), await town.connect()
    gateway = await town.start_gateway(bus)
    start_decider(town, other)
    made = 0
    for turn in range(3):
        await gateway.enact(make_maps(made, 50))
        made += 50
        if turn == 1:
            await town.kill_server()
            pending = asyncio.ensure_future(gateway.enact(make_maps(made, 50)))
            made += 50
            await asyncio.sleep(0.3)
            assert not pending.done(), "what is not stored is not answered"
            await town.start_server()
            await asyncio.wait_for(pending, 60)
    await until_labelled(gateway, made)
    store, outcomes, sequences = await read_all(await town.connect())
    assert same(store, gateway) and sequences == sorted(set(sequences))
    applied = [outcome.decision_id for outcome in outcomes]
    assert applied == await decided(other) and len(set(applied)) == len(applied)


async def test_a_gateway_and_a_service_that_are_killed_again_and_again_lose_nothing(town: Any) -> None:
    bus, other = await town.connect(), await town.connect()
    gateway, deciding, made = await town.start_gateway(bus), start_decider(town, other), 0
    for turn in range(5):
        await gateway.enact(make_maps(made, 30))
        made += 30
        await asyncio.sleep(0.01 * turn)
        killed = town.tasks[-1] if turn % 2 else deciding
        if killed is deciding:
            await town.kill(deciding)
            deciding = start_decider(town, other)
        else:
            await town.kill(killed)
            gateway = await town.start_gateway(bus)
    gateways = [task for task in town.tasks if task is not deciding and not task.done()]
    for task in gateways:
        await town.kill(task)
    gateway = await town.start_gateway(bus)
    await until_labelled(gateway, made)
    store, outcomes, _ = await read_all(other)
    assert same(store, gateway)
    applied = [outcome.decision_id for outcome in outcomes]
    assert applied == await decided(other) and len(set(applied)) == len(applied)


async def test_a_second_gateway_of_the_same_name_ends_the_first(town: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Both believe to hold the lease; the log refuses the older one, and nothing that it wrote last is a fact."""
    caplog.set_level(logging.CRITICAL)
    first = await town.start_gateway(await town.connect())
    second = await town.start_gateway(await town.connect())
    await second.enact(make_maps(0, 1))
    lost = asyncio.ensure_future(first.enact(make_maps(100, 1)))
    task = town.tasks[0]
    with pytest.raises(Exception, match="another gateway writes the facts"):
        await asyncio.wait_for(asyncio.shield(task), 60)
    town.tasks.remove(task)
    await asyncio.gather(lost, return_exceptions=True)
    assert isinstance(lost.exception(), Exception)
    await second.enact(make_maps(1, 1))
    store, _, _ = await read_all(await town.connect())
    assert sorted(key.name for key in store.of_kind(MAP)) == ["m0", "m1"] and same(store, second)


async def test_sets_of_any_size_snapshots_and_a_trimmed_log_lead_to_the_same_state(town: Any) -> None:
    """A change set of several parts has the sequence of its last part as its revision, here and for every reader."""
    bus = await town.connect()
    gateway = await town.start_gateway(bus)
    await gateway.enact(make_maps(0, 300, size=5_000))
    await gateway.enact(make_maps(300, 10))
    await gateway.snapshot()
    await gateway.enact(make_maps(310, 300, size=5_000))
    log = bus.log(subjects.FACTS)
    assert await log.last() > 6
    found = await log.snapshot()
    assert found is not None
    await log.trim(found[0] + 1)
    fold, _ = await load(log)
    await _catch_up(log, fold)
    assert same(fold.store, gateway)
    await town.kill(town.tasks[-1])
    successor = await town.start_gateway(bus)
    assert same(fold.store, successor)
    await successor.enact(make_maps(1_000, 1))
    await _catch_up(log, fold)
    assert same(fold.store, successor)


async def _catch_up(log: Any, fold: FactFold) -> None:
    goal, reader = await log.last(), log.read(fold.revision)
    async with asyncio.timeout(60):
        while fold.revision < goal:
            for entry in await anext(reader):
                fold.take(entry)
    await reader.aclose()
