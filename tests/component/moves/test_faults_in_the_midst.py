"""Whatever breaks in the midst of a migration: nobody leaves without a place, nothing is held for ever, nobody is lost."""

from random import Random
from typing import Any

import pytest

from kube import Manifest, Object
from testing.scenarios.target import PodReport
from tidegate_cli.sim.world import World

MIGRATION = "PodMigrationJob.scheduling.koordinator.sh"
RESERVATION = "Reservation.scheduling.koordinator.sh"
MINUTE = 60_000


def manifest(kind: str, name: str, spec: Manifest, api: str) -> Manifest:
    metadata = {"name": name} if kind in ("PodMigrationJob", "Node") else {"name": name, "namespace": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def begun(seed: int) -> tuple[World, Random]:
    """Three nodes that are nearly full, and workloads of several pods, some with a budget."""
    random = Random(seed)
    world = World(
        {"descheduler": {"migration": {"maxMigratingPerNode": 3}}}, {"podStart": "4s", "termination": "6s"}, seed
    )
    amounts = {"allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"}}
    nodes = [{**manifest("Node", f"n{number}", {}, "v1"), "status": amounts} for number in range(4)]
    world.put_nodes(nodes)
    for number in range(3):
        labels = {"app": f"w{number}"}
        pod = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
        spec = {
            "replicas": 4,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        world.apply([manifest("ReplicaSet", f"w{number}", spec, "apps/v1")])
        if random.random() < 0.5:
            budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
            world.apply([manifest("PodDisruptionBudget", f"w{number}", budget, "policy/v1")])
    world.settle()
    world.advance(MINUTE)
    return world, random


def of_kind(world: World, kind: str) -> list[Object]:
    return sorted(world.store().of_kind(kind).values(), key=lambda item: item.key)


def ask(world: World, random: Random, number: int) -> None:
    """Somebody wants a pod moved, or the same one twice."""
    pods = of_kind(world, "Pod")
    spec = {
        "mode": random.choice(["ReservationFirst", "ReservationFirst", "ReservationFirst", "EvictDirectly"]),
        "ttl": random.choice(["30s", "2m"]),
        "paused": random.random() < 0.1,
        "podRef": {"namespace": "default", "name": random.choice(pods).name},
    }
    world.apply([manifest("PodMigrationJob", f"move-{number:03}", spec, "scheduling.koordinator.sh/v1alpha1")])


def break_something(world: World, random: Random) -> None:
    """One of the things that happen."""
    match random.randrange(9):
        case 0 | 1:
            world.restart([random.choice(["controllers", "scheduler", "all"])])
        case 2:
            world.delete(random.choice(of_kind(world, "Pod")).key)
        case 3 if of_kind(world, RESERVATION):
            world.delete(random.choice(of_kind(world, RESERVATION)).key)
        case 4 if of_kind(world, MIGRATION):
            world.delete(random.choice(of_kind(world, MIGRATION)).key)
        case 5:
            pod = random.choice(of_kind(world, "Pod"))
            if pod.status.get("phase") == "Running":
                world.set_pod("default", pod.name, PodReport(ready=random.random() < 0.6))
        case 6:
            closed = random.random() < 0.4
            world.patch_node(f"n{random.randrange(3)}", {"spec": {"unschedulable": closed}})
        case 7 if random.random() < 0.2 and len(of_kind(world, "Node")) == 4:
            world.delete_node("n3")
        case 8:
            for job in of_kind(world, MIGRATION):
                if job.spec.get("paused"):
                    spec = {**job.spec, "paused": False}
                    world.apply([manifest("PodMigrationJob", job.name, spec, job.manifest()["apiVersion"])])
        case _:
            pass


def broken(world: World) -> list[str]:
    """What must not be: a pod that left with no reservation before, or one that stands for a job that is over and moved nobody."""
    found, left = [], set[str]()
    jobs = {job.name: job for job in of_kind(world, MIGRATION)}
    for name, job in jobs.items():
        told = {one["type"]: one for one in job.status.get("conditions") or ()}
        left = told.get("Eviction", {}).get("reason") in ("Evicting", "EvictComplete")
        if (
            left
            and job.spec["mode"] == "ReservationFirst"
            and told.get("ReservationScheduled", {}).get("status") != "True"
        ):
            found.append(f"{name}: its pod left without a place")
    for item in of_kind(world, RESERVATION):
        job = jobs.get(item.name)
        held = item.status.get("phase") in (None, "Pending", "Available")
        if held and (job is None or job.status.get("phase") in ("Failed", "Aborted")) and item.name not in left:
            found.append(f"reservation {item.name} is held for nobody")
    return found


@pytest.mark.parametrize("seed", range(6))
def test_nobody_leaves_without_a_place_and_nothing_is_held_for_ever(seed: int) -> None:
    world, random = begun(seed)
    seen: dict[Any, Object] = {}
    try:
        for number in range(40):
            if random.random() < 0.6:
                ask(world, random, number)
            if random.random() < 0.5:
                break_something(world, random)
            world.advance(random.choice([500, 2000, 7000, 15_000]))
            assert world.violations() == [] and broken(world) == [], number
            seen.update({job.key: job for job in of_kind(world, MIGRATION)})
        for number in range(3):
            world.patch_node(f"n{number}", {"spec": {"unschedulable": False}})
        for pod in of_kind(world, "Pod"):
            if pod.status.get("phase") == "Running":
                world.set_pod("default", pod.name, PodReport(ready=True))
        world.advance(10 * MINUTE)
        open_jobs = [
            job.name for job in of_kind(world, MIGRATION) if job.status.get("phase") in (None, "Pending", "Running")
        ]
        paused = [job.name for job in of_kind(world, MIGRATION) if job.spec.get("paused")]
        assert set(open_jobs) <= set(paused) and broken(world) == []
        running = [pod for pod in of_kind(world, "Pod") if pod.spec.get("nodeName")]
        assert len(running) == 12 and 0 < len(world.evictions()) <= len(seen)
    finally:
        world.close()
