"""A service of a few lines on the bus in memory, under virtual time, and a cluster side that the test plays."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import pytest

from bus import MemoryBus
from chassis import Decider, LoopClock, Measures, Role, Workplace
from chassis.virtual_time import VirtualLoop
from kube import Decision, Edit, Event, Key, Manifest, Mutation, Outcome, Verb
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import decode_commit
from tidegate.codec.facts import FactSet
from tidegate.decision.v1 import decision_pb2


class ToyCore:
    """Wants every ConfigMap to be labelled, one decision each; a map ``bad`` is one that it stumbles over.

    ``since`` in the data of a map is when its turn comes, in milliseconds since the epoch.
    """

    def __init__(self) -> None:
        self.plain: dict[Key, int] = {}
        self.assumed: dict[str, Decision] = {}
        self.settled: list[Outcome] = []
        self.heard: list[str] = []
        self.folds: list[list[str]] = []
        self.decided_at: list[int] = []

    def fold(self, events: Sequence[Event], now: int) -> None:
        self.folds.append([event.key.name for event in events])
        for event in events:
            if event.key.name == "bad":
                raise ValueError("a map that nobody can read")
            self.plain.pop(event.key, None)
            if event.new is not None and "done" not in event.new.labels:
                self.plain[event.key] = int(event.new.body.get("data", {}).get("since", 0))

    def hear(self, service: str, decision: Decision) -> None:
        self.heard.append(decision.reason)

    def assume(self, decision_id: str, decision: Decision) -> None:
        self.assumed[decision_id] = decision

    def settle(self, outcome: Outcome) -> None:
        self.assumed.pop(outcome.decision_id, None)
        self.settled.append(outcome)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        due = [key for key, since in self.plain.items() if since <= now and key not in in_flight]
        self.decided_at += [now] * bool(due)
        patch = {"metadata": {"labels": {"done": "yes"}}}
        return [Decision("MapLabelled", key, mutations=(Mutation(Verb.PATCH, key, patch=patch),)) for key in due]

    def deadline(self) -> int | None:
        return min((since for since in self.plain.values() if since), default=None)

    def query(self, name: str, arguments: Manifest) -> Manifest:
        return {"name": name, "plain": sorted(key.name for key in self.plain), **arguments}

    def check(self) -> list[str]:
        return []


class Rig:
    """The loop, the bus, and what a test does with them."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        asyncio.set_event_loop(self.loop)
        self.bus, self.clock = MemoryBus(), LoopClock()
        self.cores: list[ToyCore] = []
        self.tasks: list[asyncio.Task[None]] = []

    def make_core(self) -> ToyCore:
        self.cores.append(ToyCore())
        return self.cores[-1]

    def start(
        self, holder: str = "a", *, inputs: tuple[str, ...] = (), core: Callable[[], ToyCore] | None = None
    ) -> Decider:
        decider = Decider(
            Role("toy", inputs),
            core or self.make_core,
            Workplace(self.bus, self.clock, Measures("toy"), holder=holder),
        )
        self.tasks.append(self.loop.create_task(decider.run(), name=holder))
        self.loop.settle()
        return decider

    def stop(self, number: int = -1) -> None:
        """Kill a service where it stands."""
        self.tasks[number].cancel()
        self.loop.settle()

    def fact(self, *changes: Edit, outcomes: Sequence[Outcome] = (), position: int = 0) -> int:
        positions = {"toy": position} if position else {}
        return self.raw_fact(facts.encode(FactSet(self.loop.now_ms, changes, tuple(outcomes), positions)))

    def raw_fact(self, payload: bytes) -> int:
        log = self.bus.log(subjects.FACTS)

        async def append() -> int:
            last = await log.last()
            return await log.append(payload, expected=last, message_id=f"f{last}")

        return self.do(append())

    def make(self, *names: str, since: int = 0) -> int:
        body = {"data": {"since": since}}
        return self.fact(*(Edit(config_map(name), f"u-{name}", {}, body, {}, fresh=True) for name in names))

    def commits(self, service: str = "toy") -> list[decision_pb2.Commit]:
        entries = self.bus.log(subjects.decisions(service)).entries(0)
        return [decision_pb2.Commit.FromString(entry.payload) for entry in entries]

    def decisions(self) -> list[tuple[str, str]]:
        """All that was decided so far: the ids and the names of the maps."""
        return [(id_, decision.subject.name) for commit in self.commits() for id_, decision in decode_commit(commit)]

    def answer(self, decision_id: str, name: str, applied: bool = True) -> int:
        """The outcome of a decision, and what it changed."""
        done = [Edit(config_map(name), f"u-{name}", {"labels": {"done": "yes"}})] if applied else []
        outcome = Outcome(decision_id, "MapLabelled", config_map(name), applied, {} if applied else {"": "not now"})
        holding = (
            number for number, commit in enumerate(self.commits(), 1) if decision_id in map(_id, commit.decisions)
        )
        return self.fact(*done, outcomes=[outcome], position=next(holding))

    def do(self, work: object) -> int:
        task = self.loop.create_task(work)  # type: ignore[arg-type, var-annotated]
        self.loop.settle()
        return task.result()  # type: ignore[no-any-return]

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()
        asyncio.set_event_loop(None)


def _id(decision: decision_pb2.Decision) -> str:
    return decision.id


def config_map(name: str) -> Key:
    return Key("ConfigMap", "default", name)


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.close()
