"""A gateway that is killed at any moment: its successor goes on as if nothing had happened."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bus import BusError, MemoryBus
from bus.memory import MemoryLog
from cluster_gateway.domain.simulated_nodes import SimulationSettings
from cluster_gateway.gateway import Gateway
from kube import Decision, Key, Manifest, Mutation, Store, Verb
from tidegate import subjects
from tidegate.codec import facts
from tidegate.fact.v1 import fact_pb2
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2

JOB = Key("Job.batch.volcano.sh", "default", "j")


class Reaper:
    """Kills whoever passes the n-th of the points at which a process could die."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.passed = 0
        self.kill_at: frozenset[int] = frozenset()

    async def gate(self) -> None:
        if asyncio.current_task() is not self.task or self.task is None:
            return
        self.passed += 1
        if self.passed in self.kill_at:
            self.task.cancel()
        await asyncio.sleep(0)


class FrailLog(MemoryLog):
    """A log at which a process may die before and after everything that it does."""

    def __init__(self, name: str, reaper: Reaper) -> None:
        super().__init__(name)
        self._reaper = reaper

    async def append(
        self,
        payload: bytes,
        *,
        expected: int,
        message_id: str,
        headers: Mapping[str, str] | None = None,
        topic: str = "",
    ) -> int:
        await self._reaper.gate()
        last = await super().append(payload, expected=expected, message_id=message_id, headers=headers, topic=topic)
        await self._reaper.gate()
        return last

    async def put_snapshot(self, sequence: int, content: bytes) -> None:
        await self._reaper.gate()
        await super().put_snapshot(sequence, content)
        await self._reaper.gate()


class FrailBus(MemoryBus):
    def __init__(self, reaper: Reaper) -> None:
        super().__init__()
        self._reaper = reaper

    def log(self, name: str) -> MemoryLog:
        return self._logs.setdefault(name, FrailLog(name, self._reaper))

    async def set_value(self, subject: str, payload: bytes) -> None:
        await self._reaper.gate()
        await super().set_value(subject, payload)
        await self._reaper.gate()


class Story:
    """Users, services and nodes that do the same things, each of them until it is done."""

    def __init__(self, rig: Any, kill_at: frozenset[int]) -> None:
        self.rig, self.reaper = rig, Reaper()
        rig.kill()
        rig.bus = FrailBus(self.reaper)
        self.reaper.kill_at = kill_at
        self.starts = 0
        self.ids: list[str] = []
        self.entries: dict[int, bytes] = {}
        self.start()

    def start(self) -> None:
        while self.rig.task.done():
            self.starts += 1
            self.begin()

    def begin(self) -> None:
        rig = self.rig
        rig.gateway = Gateway(rig.bus, rig.clock, rig.settings, rig.secrets, lambda: f"uid-{next(rig._uids)}")
        rig.task = self.reaper.task = rig.loop.create_task(rig.gateway.run())
        self.settle()

    def settle(self) -> None:
        self.rig.loop.settle()
        for entry in self.rig.bus.log(subjects.FACTS).entries(0):
            self.entries[entry.sequence] = entry.payload

    def ask(self, subject: str, payload: bytes) -> bytes:
        for _ in range(10):
            self.start()
            asking = self.rig.loop.create_task(self.rig.bus.request(subject, payload))
            self.settle()
            assert asking.done(), "who asks a gateway that dies is told so at once"
            error = asking.exception()
            if error is None:
                self.start()
                return asking.result()  # type: ignore[no-any-return]
            assert isinstance(error, BusError)
        raise AssertionError("never answered")

    def write(self, *manifests: Manifest) -> None:
        answer = self.ask(subjects.WRITE, self.rig.storing(*manifests).SerializeToString())
        assert gateway_pb2.WriteReply.FromString(answer).error == "", "what is asked again is done once"

    def report(self, message: Any) -> None:
        self.ask(subjects.report(message.node), message.SerializeToString())

    def decide(self, service: str, *decisions: Decision) -> None:
        self.rig.decide(service, *decisions, on=max(self.entries))
        count = len(self.rig.bus.log(subjects.decisions(service)).entries(0))
        self.ids += [f"{service}/{count}/{number}" for number in range(1, len(decisions) + 1)]
        self.settle()
        self.start()

    def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            self.rig.loop.advance(1000)
            self.settle()
            self.start()

    def item(self, key: Key) -> Any:
        return self.rig.gateway.local.store.objects[key]

    def messages(self) -> Iterator[fact_pb2.ChangeSet]:
        for sequence in sorted(self.entries):
            yield fact_pb2.ChangeSet.FromString(self.entries[sequence])

    def state(self) -> dict[Key, Any]:
        """What all facts together say, with names instead of uids."""
        store = Store()
        for sequence, message in zip(sorted(self.entries), self.messages(), strict=True):
            facts.fold(store, message, sequence)
        own = self.rig.gateway.local.store.objects
        assert {k: (i.metadata, i.body, i.status) for k, i in own.items()} == {
            k: (i.metadata, i.body, i.status) for k, i in store.objects.items()
        }
        return {key: (_nameless(item.metadata), item.body, item.status) for key, item in store.objects.items()}

    def outcomes(self) -> list[tuple[str, bool]]:
        found = (outcome for message in self.messages() for outcome in facts.outcomes(message))
        return [(outcome.decision_id, outcome.applied) for outcome in found]


def _nameless(metadata: Manifest) -> Manifest:
    owners = [{**owner, "uid": ""} for owner in metadata.get("ownerReferences", ())]
    return {**metadata, **({"ownerReferences": owners} if owners else {})}


def pod(name: str, **annotations: str) -> Manifest:
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main"}]}}


def tell(story: Story) -> None:
    """A job comes, is given pods, they are bound, one runs to its end, one is evicted, the rest goes with the job."""
    ready = (
        b'{"conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":"8"},'
        b'"nodeInfo":{"containerRuntimeVersion":"process://1"}}'
    )
    simulated = b'{"annotations":{"tidegate.dev/simulated":"true"}}'
    story.report(node_pb2.Report(node="sim", node_status=ready, node_metadata=simulated))
    story.report(node_pb2.Report(node="real", node_status=ready))
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"queue": "default"},
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "tide"}}
    story.write(job, secret)
    uid = story.item(JOB).uid
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": uid, "controller": True}
    made = []
    for name, notes in (("a", {"simulate/duration": "3s"}), ("b", {}), ("c", {})):
        manifest = pod(name, **notes)
        manifest["metadata"]["ownerReferences"] = [owner]
        made.append(Mutation(Verb.CREATE, Key("Pod", "default", name), manifest=manifest))
    story.decide("job_controller", Decision("PodsMade", JOB, uid, mutations=tuple(made)))
    stale = Decision("Stale", JOB, "another uid")
    story.decide("job_controller", stale, Decision("Nothing", JOB, uid))
    pods = {name: story.item(Key("Pod", "default", name)) for name in "abc"}
    story.decide(
        "gang_scheduler",
        *(
            Decision("PodPlaced", item.key, item.uid, mutations=(Mutation(Verb.BIND, item.key, item.uid, node=node),))
            for item, node in ((pods["a"], "sim"), (pods["b"], "real"), (pods["c"], "sim"))
        ),
    )
    running = node_pb2.PodReport(uid=pods["b"].uid, namespace="default", name="b", status=b'{"phase":"Running"}')
    story.report(node_pb2.Report(node="real", pods=[running]))
    story.advance(2)
    evict = Mutation(Verb.EVICT, pods["c"].key, pods["c"].uid)
    story.decide("gang_scheduler", Decision("PodEvicted", pods["c"].key, pods["c"].uid, mutations=(evict,)))
    story.advance(4)
    story.write(pod("late"))
    story.decide("job_controller", Decision("JobEnded", JOB, uid, mutations=(Mutation(Verb.DELETE, JOB, uid),)))
    story.report(node_pb2.Report(node="real", gone=[pods["b"].uid]))
    story.advance(1)


@pytest.fixture
def tell_with(make_rig: Any) -> Any:
    def run(*kill_at: int) -> Story:
        simulation = SimulationSettings(pod_start_ms=1_000, termination_ms=1_000)
        rig = make_rig(simulation=simulation, snapshot_entries=4, history_entries=6)
        story = Story(rig, frozenset(kill_at))
        tell(story)
        return story

    return run


def test_an_undisturbed_story_ends_as_it_should(tell_with: Any) -> None:
    story = tell_with()
    assert story.starts == 1
    pods = {key.name: status.get("phase") for key, (_, _, status) in story.state().items() if key.kind == "Pod"}
    assert pods == {"late": "Pending"}
    assert [applied for _, applied in story.outcomes()].count(False) == 1


def test_killed_at_any_one_point_it_ends_the_same(tell_with: Any) -> None:
    """The facts in the end are those of the undisturbed story, and each decision has exactly one outcome."""
    plain = tell_with()
    state, outcomes = plain.state(), plain.outcomes()
    assert [decision_id for decision_id, _ in outcomes] == plain.ids
    for point in range(1, plain.reaper.passed + 1):
        story = tell_with(point)
        assert story.starts == 2, f"the kill at point {point} had no effect"
        assert story.state() == state, f"killed at point {point}"
        assert story.outcomes() == outcomes, f"killed at point {point}"
        assert b"tide" not in b"".join(story.entries.values()).replace(b"tidegate", b"")


@pytest.mark.parametrize("every", [6, 7, 11, 13])
def test_killed_again_and_again_it_ends_the_same(tell_with: Any, every: int) -> None:
    plain = tell_with()
    story = tell_with(*range(every, 2_000, every))
    assert story.starts > 3
    assert (story.state(), story.outcomes()) == (plain.state(), plain.outcomes())
