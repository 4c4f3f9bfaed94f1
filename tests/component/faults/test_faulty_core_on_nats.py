"""A core that raises, on a real bus: its lease is kept while the culprit is searched, and its successor decides on."""

import asyncio
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import orjson

from bus.jetstream import JetStreamBus
from chassis import Decider, Measures, Role, SystemClock, Workplace
from kube import Decision, Edit, Event, Key, Manifest, Outcome
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import decode_commit
from tidegate.codec.facts import FactSet
from tidegate.decision.v1 import decision_pb2


class SlowBrittleCore:
    """Decides about every ConfigMap but ``trap``, over which it stumbles after a good while of computing."""

    def __init__(self) -> None:
        self.maps: dict[Key, None] = {}

    def fold(self, events: Sequence[Event], now: int) -> None:
        self.maps.update({event.key: None for event in events})

    def hear(self, service: str, decision: Decision) -> None: ...

    def assume(self, decision_id: str, decision: Decision) -> None: ...

    def settle(self, outcome: Outcome) -> None: ...

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        free = [key for key in self.maps if key not in in_flight]
        if any(key.name == "trap" for key in free):
            time.sleep(0.3)
            raise RuntimeError("the trap snaps")
        return [Decision("MapSeen", key) for key in free]

    def deadline(self) -> int | None:
        return None

    def query(self, name: str, arguments: Manifest) -> Manifest:
        return {}

    def check(self) -> list[str]:
        return []


async def test_the_lease_is_kept_and_all_others_are_decided(bus: JetStreamBus) -> None:
    decider = Decider(Role("toy"), SlowBrittleCore, Workplace(bus, SystemClock(), Measures("toy"), holder="a"))
    leading = asyncio.create_task(decider.run())
    log, decisions = bus.log(subjects.FACTS), bus.log(subjects.decisions("toy"))
    try:
        for number, name in enumerate(["one", "trap", "two"]):
            made = Edit(Key("ConfigMap", "default", name), name, {}, {}, {}, fresh=True)
            await log.append(facts.encode(FactSet(1, (made,))), expected=number, message_id=name)
        seen: list[str] = []
        epochs = []
        async with asyncio.timeout(90):
            async for entries in decisions.read(0):
                for entry in entries:
                    commit = decision_pb2.Commit.FromString(entry.payload)
                    epochs += [commit.epoch] if commit.leader_started else []
                    seen += [decision.subject.name for _, decision in decode_commit(commit)]
                if len(seen) == 2:
                    break
        assert sorted(seen) == ["one", "two"] and len(epochs) <= 3
        report = orjson.loads(await bus.request(subjects.question("toy", "status"), b""))
        assert list(report["aside"]) == ["ConfigMap/default/trap"] and not report["trouble"]
        (parked,) = await bus.parked()
        assert (parked.service, parked.source) == ("toy", "ConfigMap/default/trap")
        assert not leading.done()
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
