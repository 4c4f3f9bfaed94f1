"""A rule of a real core raises about one object: the others are served, and that one as soon as the rule is mended."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.turns.turns import Pass
from job_controller.domain.volcano.job import VolcanoJobs
from kube import Key, Manifest
from queue_manager.domain.gates.gate import Gate
from queue_manager.domain.members.demand import Demand
from tidegate import subjects
from tidegate_cli.sim.world import World


class TolerantWorld(World):
    """A world in which cores may raise, as they may in a running system."""

    def _check_cores(self) -> None: ...

    def violations(self) -> list[str]:
        """What is wrong besides that something was set aside, which is what is tried here."""
        return [text for text in super().violations() if " aside: " not in text]

    def parked(self) -> list[tuple[str, str, str]]:
        return [(item.service, item.source, item.error) for item in self._do(self._bus.parked())]

    def ask(self, service: str, key: Key) -> Manifest:
        question = json.dumps({"kind": key.kind, "namespace": key.namespace, "name": key.name}).encode()
        answer: Manifest = json.loads(self._do(self._bus.request(subjects.question(service, "explain"), question)))
        return answer

    def running(self) -> list[str]:
        pods = self.store().of_kind("Pod").values()
        return sorted(pod.name for pod in pods if pod.status.get("phase") == "Running")


@pytest.fixture
def world() -> Iterator[TolerantWorld]:
    made = TolerantWorld({}, {})
    made.put_nodes([node(f"n{number}") for number in range(4)])
    made.settle()
    yield made
    made.close()


def node(name: str) -> Manifest:
    amounts = {"cpu": "4", "memory": "64Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status}


def job(name: str) -> Manifest:
    container = {"name": "m", "image": "i", "command": ["x"], "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    task = {"name": "w", "replicas": 2, "template": template}
    spec = {"minAvailable": 2, "schedulerName": "volcano", "tasks": [task]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def raising(kind: type, method: str, about: Any, monkeypatch: pytest.MonkeyPatch, *, halfway: bool = False) -> None:
    """Let ``method`` raise where ``about`` finds "trap" in what it is given; ``halfway``: once it is done."""
    real = getattr(kind, method)

    def broken(self: Any, *arguments: Any) -> Any:
        trapped = "trap" in about(self, *arguments)
        if trapped and not halfway:
            raise RuntimeError("a rule that does not hold")
        result = real(self, *arguments)
        if trapped:
            raise RuntimeError("a rule that does not hold")
        return result

    monkeypatch.setattr(kind, method, broken)


def head_of_line(turns: Pass, queue: str) -> str:
    return turns._lines[queue][0][1].unit[0].name


FAULTS = {
    "the scheduler has laid the gang on trial": (
        "gang_scheduler",
        lambda patch: raising(Pass, "_serve", head_of_line, patch, halfway=True),
    ),
    "the scheduler looks at the pod": (
        "gang_scheduler",
        lambda patch: raising(Cluster, "fold_pods", lambda _, run: str(run[0].key.name), patch, halfway=True),
    ),
    "the gate judges the group": ("queue_manager", lambda patch: raising(Gate, "judge", _group, patch, halfway=True)),
    "the books take the group": (
        "queue_manager",
        lambda patch: raising(Demand, "fold_group", lambda _, event: event.key.name, patch, halfway=True),
    ),
    "the job is looked at": ("job_controller", lambda patch: raising(VolcanoJobs, "reconcile", _job, patch)),
}


def _group(_: Gate, group: Any, room: Any) -> str:
    return str(group.key.name)


def _job(_: VolcanoJobs, item: Any, view: Any, now: int) -> str:
    return str(item.name)


@pytest.mark.parametrize("where", FAULTS)
def test_the_others_run_and_the_one_is_set_aside_with_its_error(
    world: TolerantWorld, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, breaks = FAULTS[where]
    world.apply([job("before")])
    world.settle()
    breaks(monkeypatch)
    world.apply([job("left"), job("trap"), job("right")])
    world.settle()
    others = [f"{name}-w-{number}" for name in ("before", "left", "right") for number in (0, 1)]
    assert world.running() == others
    world.advance(3_000)
    world.apply([job("late")])
    world.settle()
    assert world.running() == sorted([*others, "late-w-0", "late-w-1"])
    parked = world.parked()
    assert parked and all(name == service and "a rule that does not hold" in error for name, _, error in parked)
    assert all("trap" in source for _, source, _ in parked), parked


@pytest.mark.parametrize("where", [where for where in FAULTS if "job" not in where])
def test_it_is_served_once_the_rule_is_mended(
    world: TolerantWorld, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        FAULTS[where][1](broken)
        world.apply([job("left"), job("trap")])
        world.settle()
        assert world.running() == ["left-w-0", "left-w-1"]
    world.advance(6_000)
    assert world.running() == ["left-w-0", "left-w-1", "trap-w-0", "trap-w-1"]
    assert world.violations() == []


def test_who_asks_about_the_one_is_told(world: TolerantWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(Pass, "_serve", head_of_line, monkeypatch)
    world.apply([job("trap")])
    world.settle()
    (group,) = world.store().of_kind("PodGroup.scheduling.volcano.sh")
    answer = world.ask("gang_scheduler", group)
    assert answer["verdict"] == "SetAside" and "a rule that does not hold" in answer["message"]
