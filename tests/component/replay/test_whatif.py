"""What would become of a job: answered by the services themselves from a snapshot, and nothing is touched."""

from collections.abc import Iterator

import pytest

from bus import MemoryBus
from chassis.snapshots import Snapshots
from kube import Key, Manifest
from tidegate import subjects
from tidegate.codec.snapshots import NoSnapshot, pack, unpack
from tidegate.snapshot.v1 import snapshot_pb2
from tidegate_cli.sim.services import ROLES
from tidegate_cli.sim.world import World
from tidegate_cli.whatif.question import Answer, Question
from tidegate_cli.whatif.restoring import restored
from tidegate_cli.whatif.words import answer_lines

HOUR = 3_600_000


def job(name: str, count: int, cpu: str, *, queue: str = "default", priority: str = "", estimate: str = "") -> Manifest:
    annotations = {"tidegate.dev/running-estimate": estimate} if estimate else {}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec: Manifest = {"containers": [container]} | ({"priorityClassName": priority} if priority else {})
    task = {"name": "w", "replicas": count, "template": {"metadata": {"annotations": annotations}, "spec": spec}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": count, "queue": queue, "tasks": [task]}
        | ({"priorityClassName": priority} if priority else {}),
    }


def node(name: str, cpu: str) -> Manifest:
    status = {"allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def priority(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


@pytest.fixture
def world() -> Iterator[World]:
    """A system with two nodes of four CPUs."""
    made = World({}, {})
    made.put_nodes([node("a", "4"), node("b", "4")])
    made.settle()
    yield made
    made.close()


def snapshot(world: World, bus: MemoryBus) -> snapshot_pb2.SystemSnapshot:
    taker = Snapshots(bus, ROLES["all"], "test")

    async def take() -> snapshot_pb2.SystemSnapshot:
        logs, _ = await taker.logs()
        view = world.view
        return taker.present(logs, list(view.store.objects.values()), view.standing(), world.now())

    return unpack(pack(world.do(take())))


def ask(world: World, *manifests: Manifest, horizon_ms: int = 24 * HOUR) -> list[Answer]:
    """The answers; the world that was asked about stays as it was."""
    before = [(name, world.bus.log(name).entries(0)) for name in ("fact", subjects.decisions("gang_scheduler"))]
    other = restored(snapshot(world, world.bus))
    try:
        answers = Question(other, horizon_ms).ask(manifests)
    finally:
        other.close()
    assert [(name, world.bus.log(name).entries(0)) for name, _ in before] == before
    return answers


def test_what_has_room_would_start_now_and_it_is_told_where(world: World) -> None:
    (answer,) = ask(world, job("j", 2, "2"))
    assert (answer.verdict, answer.placements) == ("now", [("j-w-0", "a"), ("j-w-1", "a")])
    assert list(answer_lines(answer, 0)) == ["job/j: would start now", "  on a: j-w-0, j-w-1"]
    assert answer.manifest()["placements"][0] == {"pod": "j-w-0", "node": "a"}


def test_the_real_run_comes_to_the_same_places(world: World) -> None:
    world.apply([job("used", 3, "1")])
    world.settle()
    (answer,) = ask(world, job("j", 2, "2"))
    world.apply([job("j", 2, "2")])
    world.settle()
    pods = world.store().of_kind("Pod").values()
    assert answer.placements == sorted((p.name, p.spec["nodeName"]) for p in pods if p.name.startswith("j-"))


def test_whom_it_would_evict_is_named_with_the_reason(world: World) -> None:
    world.apply([priority("urgent", 1000)])
    world.apply([job("low", 8, "1")])
    world.settle()
    (answer,) = ask(world, job("j", 4, "1", priority="urgent"))
    assert answer.verdict == "now"
    assert [one["reason"] for one in answer.evictions] == ["PreemptedByPriority"] * len(answer.evictions)
    assert answer.evictions and all(one["pod"].startswith("default/low-w-") for one in answer.evictions)


def test_a_reservation_that_finds_room_is_told_where(world: World) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    asked: Manifest = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "r"},
        "spec": {"template": {"spec": {"containers": [container]}}, "owners": [{"object": {"name": "p"}}], "ttl": "1h"},
    }
    (answer,) = ask(world, asked)
    assert (answer.verdict, answer.placements) == ("now", [("r", "a")])


def test_what_has_to_wait_is_told_until_when_and_for_whom(world: World) -> None:
    world.apply([job("long", 4, "1", estimate="5h"), job("short", 4, "1", estimate="30m")])
    world.advance(60_000)
    (answer,) = ask(world, job("j", 2, "2"))
    assert answer.verdict == "later"
    assert answer.at_ms is not None and 28 * 60_000 < answer.at_ms - world.now() <= 30 * 60_000
    assert any("0/2 nodes are available" in line for line in answer.lines)
    assert any("short-w-0" in line for line in answer.lines)


def test_what_waits_already_is_told_when_it_will_start(world: World) -> None:
    world.apply([job("first", 8, "1", estimate="30m"), job("waits", 2, "2")])
    world.settle()
    other = restored(snapshot(world, world.bus))
    try:
        keys = list(world.store().of_kind("Job.batch.volcano.sh"))
        answers = Question(other, 24 * HOUR).ask([], sorted(keys))
    finally:
        other.close()
    assert [(one.name, one.verdict) for one in answers] == [("job/first", "runs"), ("job/waits", "later")]
    assert answers[1].at_ms is not None and answers[1].at_ms - world.now() <= 30 * 60_000


def test_where_nobody_says_how_long_it_runs_the_time_is_not_known(world: World) -> None:
    world.apply([job("for-ever", 8, "1")])
    world.settle()
    (answer,) = ask(world, job("j", 1, "1"))
    assert (answer.verdict, answer.at_ms) == ("waits", None)
    assert any("nobody says when" in line for line in answer.lines)


def test_what_can_never_fit_is_told_so(world: World) -> None:
    (answer,) = ask(world, job("j", 1, "9"))
    assert answer.verdict == "waits"
    assert any("NeverFits" in line for line in answer.lines)


def test_what_admission_refuses_is_refused_and_the_rest_is_answered(world: World) -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "small"},
        "spec": {"capability": {"cpu": "1"}},
    }
    answers = ask(world, queue, job("j", 2, "1", queue="small"), job("k", 1, "1", queue="nowhere"), job("l", 1, "1"))
    assert [answer.verdict for answer in answers] == ["applied", "waits", "refused", "now"]
    assert any("queue small may have at most 1" in line for line in answers[1].lines)


def test_decisions_on_their_way_are_carried_out_in_the_snapshot(world: World) -> None:
    """A snapshot taken while a decision has no outcome yet goes on from there."""
    world.apply([job("j", 2, "2")])
    world.settle()
    taken = snapshot(world, world.bus)
    settled = [entry for log in taken.logs for entry in log.entries if not entry.settled]
    assert settled == []
    source = world.bus.log(subjects.decisions("gang_scheduler"))
    binding = next(entry for entry in source.entries(0) if b"GangPlaced" in entry.payload)
    for part in taken.facts.parts:
        for change in part.changes:
            if part.kinds[change.kind] == "Pod":
                change.node, change.status = "", 0
    log = next(log for log in taken.logs if log.service == "gang_scheduler")
    log.entries.add(sequence=binding.sequence, payload=binding.payload)
    other = restored(taken)
    try:
        other.settle()
        pod = other.store().objects[Key("Pod", "default", "j-w-0")]
        assert pod.spec["nodeName"] == "a"
    finally:
        other.close()


def test_the_policy_of_the_services_comes_with_the_snapshot() -> None:
    world = World({"placement": "spread", "preemption": False}, {})
    try:
        world.put_nodes([node("a", "4"), node("b", "4")])
        world.settle()
        (answer,) = ask(world, job("j", 2, "1"))
        assert sorted(node for _, node in answer.placements) == ["a", "b"]
    finally:
        world.close()


def test_the_same_state_gives_the_same_file(world: World) -> None:
    assert pack(snapshot(world, world.bus)) == pack(snapshot(world, world.bus))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"hello", "no snapshot"),
        (pack(snapshot_pb2.SystemSnapshot(format=1))[:-5], "damaged or cut off"),
        (pack(snapshot_pb2.SystemSnapshot(format=99)), "format 99"),
    ],
)
def test_what_is_no_snapshot_is_refused_with_the_reason(content: bytes, told: str) -> None:
    with pytest.raises(NoSnapshot, match=told):
        unpack(content)
