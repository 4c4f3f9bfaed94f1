"""Much at once while parts die: long streams of objects, and jobs that come and go. ``TIDEGATE_LONG=1`` goes on for longer."""

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tidegate_system_gangs import clean, is_empty, is_whole, ring

from kube import Manifest
from tidegate.client import ClientError, SyncClient
from tidegate.services import SERVICES

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

LONG = bool(os.environ.get("TIDEGATE_LONG"))
BROKEN_SECONDS = 60.0
"""A part that died, started again: no stream that gets on at all is without an answer for so long."""
PARTS = ("nats", *SERVICES)


def pod(name: str, run: str) -> Manifest:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "10m"}}}
    metadata = {"name": name, "namespace": "default", "labels": {"run": run}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def gang(name: str, members: int, run: str) -> list[Manifest]:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": members},
    }
    pods = [pod(f"{name}-{number}", run) for number in range(members)]
    for one in pods:
        one["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
    return [group, *pods]


def stream(client: SyncClient, parts: list[list[Manifest]]) -> Iterator[Any]:
    """Send ``parts`` over one stream; a stream that breaks is begun again with what was not answered."""
    left, until = list(parts), time.monotonic() + BROKEN_SECONDS
    while left:
        try:
            for answer in client.apply_stream(iter(left.copy())):
                left.pop(0)
                until = time.monotonic() + BROKEN_SECONDS
                yield answer
        except ClientError:
            assert time.monotonic() < until, "the stream breaks again and again"
            time.sleep(0.2)


def is_bound(system, run: str, count: int) -> list[str]:
    """What is wrong with the pods of one run."""
    pods = system.all_of("pods", f"run={run}")
    phases = Counter(one["status"].get("phase") for one in pods)
    wrong = [] if len(pods) == count else [f"{len(pods)} pods of {count}"]
    return wrong + ([] if phases == {"Running": count} else [f"phases are {dict(phases)}"])


@pytest.mark.parametrize("victims", [(), ("cluster_gateway",), ("nats",), ("admission",), ("gang_scheduler",)])
def test_a_stream_of_single_pods_right_behind_many_gangs_comes_to_its_end(fleet, victims: tuple[str, ...]) -> None:
    run = "-".join(victims).replace("_", "-") or "calm"
    gangs = [gang(f"{run}-gang-{number}", 50, run) for number in range(20)]
    singles = [[pod(f"{run}-single-{number}", run)] for number in range(500)]
    killer = threading.Timer(0.3, lambda: fleet.kill(*victims))
    killer.start()
    client = fleet.client
    answers = list(stream(client, [*gangs, *singles]))
    killer.join()
    assert len(answers) == 520 and not [one for results in answers for one in results if one.refused]
    fleet.finally_right(lambda: is_bound(fleet, run, 1500))


@pytest.fixture(scope="module")
def fleet(system_with) -> Iterator[Any]:
    """A system of simulated nodes."""
    with system_with("--sim-nodes", "100", "--no-local-node") as started:
        yield started


def test_jobs_that_come_and_go_while_everything_dies_now_and_then(system) -> None:
    """Whatever happened, in the end the gangs that were not deleted run, once, and nothing else does."""
    dice, until = random.Random(7), time.monotonic() + (120 if LONG else 12)
    stopped = threading.Event()

    def kill_now_and_then() -> None:
        while not stopped.wait(dice.uniform(0.5, 3.0)):
            system.kill(dice.choice(PARTS))

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    alive: list[str] = []
    try:
        for number in itertools.count():
            if time.monotonic() > until:
                break
            system.apply(ring(f"storm-{number}"))
            alive.append(f"storm-{number}")
            if len(alive) > 5:
                system.delete("job", alive.pop(dice.randrange(len(alive))))
    finally:
        stopped.set()
        killer.join()
    system.finally_right(lambda: is_whole(system, alive))
    clean(system, alive)
    system.finally_right(lambda: is_empty(system))
