"""Somebody sets the machine's time by hours while gangs start, run, end and are deleted."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bus.jetstream import JetStreamBus
from chassis import Clock, SteadyClock
from chassis.endings import end
from kube import Key, Manifest
from testing.scenarios.target import MetricSample
from tidegate import subjects
from tidegate_cli.sim.world import World

HOUR_MS = 3_600_000
JOB = "Job.batch.volcano.sh"
TRAINING = "PyTorchJob.kubeflow.org"


class WoundWorld(World):
    """A world on a machine whose time can be set, and whose services read it as they do in a running system."""

    jump = 0
    steady = True

    def _make_clock(self) -> Clock:
        def ticks() -> int:
            return self._loop.now_ms

        def wall() -> int:
            return self._loop.now_ms + self.jump

        return SteadyClock(0, wall, ticks) if self.steady else Wall(self)

    def phases(self, kind: str) -> dict[str, str]:
        found = self.store().of_kind(kind).values()
        return {item.name: str((item.status.get("state") or {}).get("phase", "")) for item in found}

    def pods(self, phase: str = "") -> list[str]:
        pods = self.store().of_kind("Pod").values()
        return sorted(pod.name for pod in pods if phase in ("", pod.status.get("phase")))

    def entries(self) -> int:
        """How much was written so far, by everybody."""
        names = (subjects.FACTS, *(subjects.decisions(name) for name in self._deciders))
        return sum(len(self._bus.log(name).entries(0)) for name in names)


class Wall:
    """The machine's time as it is."""

    def __init__(self, world: WoundWorld) -> None:
        self._world = world

    def now(self) -> int:
        return self._world._loop.now_ms + self._world.jump


class UnsteadyWorld(WoundWorld):
    """Services that read the machine's time as it is."""

    steady = False


def opened(kind: type[WoundWorld]) -> WoundWorld:
    world = kind({}, {})
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "110"}
    ready = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    world.put_nodes(
        [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "spec": {}, "status": ready}
            for number in range(2)
        ]
    )
    world.settle()
    return world


@pytest.fixture
def world() -> Iterator[WoundWorld]:
    made = opened(WoundWorld)
    yield made
    made.close()


def template(duration: str = "") -> Manifest:
    container = {"name": "pytorch", "image": "i", "command": ["x"], "resources": {"requests": {"cpu": "1"}}}
    annotations = {"simulate/duration": duration} if duration else {}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [container], "restartPolicy": "Never"}}


def ring(name: str, duration: str = "") -> Manifest:
    task = {"name": "w", "replicas": 2, "template": template(duration)}
    spec = {"minAvailable": 2, "schedulerName": "volcano", "tasks": [task], "ttlSecondsAfterFinished": 600}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def timed(name: str, seconds: int) -> Manifest:
    spec = {
        "runPolicy": {"activeDeadlineSeconds": seconds, "cleanPodPolicy": "All"},
        "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "restartPolicy": "Never", "template": template()}},
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("hours", [5, -5])
def test_a_deadline_is_as_long_as_it_says_though_the_time_was_set_meanwhile(world: WoundWorld, hours: int) -> None:
    world.apply([timed("timed", 600), ring("ends", "300s")])
    world.settle()
    assert len(world.pods("Running")) == 4
    world.jump = hours * HOUR_MS
    world.advance(200_000)
    assert len(world.pods("Running")) == 4, "nothing has ended by a false time-out"
    world.jump = 0
    world.advance(200_000)
    assert world.phases(JOB) == {"ends": "Completed"}
    assert world.pods("Running") == ["timed-worker-0", "timed-worker-1"]
    world.advance(280_000)
    assert world.pods("Running") == [], "and the deadline comes all the same"
    world.advance(600_000)
    assert world.phases(JOB) == {}, "as does the end of the time for which a finished job is kept"


@pytest.mark.parametrize("kind", [WoundWorld, UnsteadyWorld])
@settings(max_examples=15)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["start", "delete", "jump", "restart"]),
            st.integers(0, 3),
            st.sampled_from([-7, -1, 0, 3, 9]),
        ),
        max_size=12,
    )
)
def test_gangs_start_and_go_whatever_the_time_is_set_to(kind: type[WoundWorld], steps: list[Any]) -> None:
    world = opened(kind)
    try:
        wanted: set[str] = set()
        for what, number, hours in steps:
            name, entries = f"ring-{number}", world.entries()
            if what == "start":
                world.apply([ring(name)])
                wanted.add(name)
            elif what == "delete" and name in wanted:
                world.delete(Key(JOB, "default", name))
                wanted.discard(name)
            elif what == "jump":
                world.jump = hours * HOUR_MS
            elif what == "restart":
                world.restart(["all"])
            world.advance(2_000)
            assert world.pods("Running") == sorted(f"{one}-w-{index}" for one in wanted for index in (0, 1))
            assert world.pods() == world.pods("Running")
            assert world.entries() - entries < 60, "nobody writes in a circle"
            assert world.violations() == []
    finally:
        world.close()


def autoscaled() -> list[Manifest]:
    labels = {"app": "web"}
    containers = [{"name": "c", "image": "i", "command": ["x"], "resources": {"requests": {"cpu": "100m"}}}]
    pods = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    made: Manifest = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pods}
    target = {"type": "AverageValue", "averageValue": "10"}
    wanted: Manifest = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 9,
        "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}],
    }
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": made},
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": wanted,
        },
    ]


@pytest.mark.parametrize("kind", [WoundWorld, UnsteadyWorld])
@pytest.mark.parametrize("jumps", [(5, -5, 0), (-3, 9, -7)])
def test_a_size_neither_flaps_nor_stands_still_whatever_the_time_is_set_to(
    kind: type[WoundWorld], jumps: tuple[int, ...]
) -> None:
    """The load dips for a moment each time that the time is set, and somebody starts anew."""
    world, web = opened(kind), Key("Deployment.apps", "default", "web")
    queue = 10**9
    try:
        assert set(world.apply(autoscaled())) == {None}
        world.sample_metrics([MetricSample("external", "queue", 60 * queue)])
        world.advance(60_000)
        for hours in jumps:
            assert world.replicas(web) == 6
            world.jump = hours * HOUR_MS
            world.sample_metrics([MetricSample("external", "queue", 20 * queue)])
            world.advance(20_000)
            world.restart(["autoscaler"])
            world.sample_metrics([MetricSample("external", "queue", 60 * queue)])
            world.advance(200_000)
        world.sample_metrics([MetricSample("external", "queue", 80 * queue)])
        world.advance(40_000)
        assert world.replicas(web) == 8
        world.sample_metrics([MetricSample("external", "queue", 20 * queue)])
        world.advance(400_000)
        assert world.replicas(web) == 2
        assert world.violations() == []
    finally:
        world.close()


async def test_a_lease_whose_holder_is_gone_is_taken_though_the_server_does_not_let_it_expire(
    bus: JetStreamBus,
) -> None:
    """The server's time was set back by an hour just after the holder had renewed and was killed."""
    gone = await bus.lease("toy", "gone", 3_600.0)
    await gone.wait()
    gone._renewing.cancel()
    heir = await bus.lease("toy", "heir", 1.0)
    async with asyncio.timeout(60):
        await heir.wait()
    await heir.release()


async def test_a_lease_that_is_renewed_is_not_taken(bus: JetStreamBus) -> None:
    holder = await bus.lease("toy", "holder", 2.0)
    await holder.wait()
    rival = await bus.lease("toy", "rival", 2.0)
    waiting = asyncio.create_task(rival.wait())
    await asyncio.sleep(6)
    assert not waiting.done()
    await end(waiting)
    await holder.release()
