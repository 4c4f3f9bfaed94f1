"""Every decision of a random life is made again from its snapshot: the same bytes come out."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tidegate_cli.sim.services import ROLES
from tidegate_cli.sim.world import World

SERVICES = ROLES["all"]


def job(name: str, random: Random) -> dict[str, Any]:
    tasks = []
    for number in range(random.randint(1, 2)):
        requests = {"cpu": str(random.randint(1, 3))} | ({"example.com/gpu": "1"} if random.random() < 0.3 else {})
        annotations = {"simulate/duration": f"{random.randint(30, 900)}s"}
        if random.random() < 0.5:
            annotations["tidegate.dev/running-estimate"] = "10m"
        template = {
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
        }
        tasks.append({"name": f"t{number}", "replicas": random.randint(1, 4), "template": template})
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": random.randint(1, sum(task["replicas"] for task in tasks)),
            "queue": random.choice(["a", "b", "default"]),
            "priorityClassName": random.choice(["low", "low", "high"]),
            "tasks": tasks,
        },
    }


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def priority(name: str, value: int) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def node(name: str, **allocatable: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", **allocatable}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def live(world: World, seed: int, steps: int) -> None:
    """A random life: jobs come, run, end and are taken away, nodes come and go."""
    random = Random(seed)
    world.put_nodes([node(f"n{number}") for number in range(2)] + [node("g", **{"example.com/gpu": "4"})])
    world.apply([queue("a", deserved={"cpu": "12"}, capability={"cpu": "20"}), queue("b", weight=2)])
    world.apply([priority("low", 1), priority("high", 10)])
    world.settle()
    names: list[str] = []
    for number in range(steps):
        choice = random.random()
        if choice < 0.5:
            names.append(f"j{number}")
            assert world.apply([job(names[-1], random)]) == [None]
        elif choice < 0.6 and names:
            world.delete(find(world, names.pop(random.randrange(len(names)))))
        elif choice < 0.7:
            world.put_nodes([node(f"x{number}")])
        elif choice < 0.75:
            world.restart(["scheduler"])
        world.advance(random.choice([1, 1_000, 1_000, 30_000, 400_000]))
    world.advance(600_000)


def find(world: World, name: str) -> Any:
    return next(key for key in world.store().objects if key.kind == "Job.batch.volcano.sh" and key.name == name)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_bytes_come_out(seed: int, remade: Callable[[World, str], Counter[str]]) -> None:
    world = World({}, {"podStart": "1s", "termination": "5s"}, seed)
    try:
        live(world, seed, 40)
        compared = Counter({(service, name): n for service in SERVICES for name, n in remade(world, service).items()})
        assert compared["gang_scheduler", "GangPlaced"] > 5
        assert len(compared) > 6
    finally:
        world.close()
