"""What a minute costs slo_controller: every node was measured, everything is learnt, and what may be lent of each is computed."""

import json
import random
import time
from collections.abc import Iterator

from tests.bench.figures import Figure, at_most, median

from kube import Decision, Event, Manifest, Object, Store, from_manifest, merge, rfc3339
from slo_controller.domain import SloCore, SloPolicy

NODES, PODS, MINUTES = 1000, 30, 5
OF_ONE_WORKLOAD = 10
START_MS = 1_767_225_600_000


async def lending() -> list[Figure]:
    """The part of a core that it takes, and what is to be committed each minute."""
    store, core = Store(), SloCore(SloPolicy.of({"enable": True}, {}))
    core.read_from(store)
    core.fold([store.put(item) for item in _cluster()], START_MS)
    chance, seconds, reading = random.Random(1), [], 0.0
    for minute in range(MINUTES):
        now = START_MS + 60_000 * minute
        manifests = [_measured(number, chance, now) for number in range(NODES)]
        texts = [json.dumps(one) for one in manifests]
        begun = time.process_time()
        for text in texts:
            json.loads(text)
        reading = time.process_time() - begun
        events = [store.put(from_manifest(one)) for one in manifests]
        begun = time.process_time()
        core.fold(events, now)
        decisions = core.decide(now, frozenset())
        content = core.remember() or b""
        seconds.append(time.process_time() - begun)
        core.fold(list(_written(store, decisions)), now)
    what = f"a minute of lending on {NODES} nodes of {PODS} pods"
    return [
        at_most(
            f"{what}, of a core", median(seconds) / 60 * 100, "%", 5.0, "reading the samples as JSON", reading / 0.6
        ),
        Figure(f"{what}, remembered", len(content) / 1024, "KiB"),
    ]


def _cluster() -> Iterator[Object]:
    amounts = {"cpu": "96", "memory": "384Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    for number in range(NODES):
        yield from_manifest(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "status": status}, uid=f"n{number}"
        )
        for pod in range(PODS):
            yield from_manifest(_pod(number, pod), uid=f"p{number}-{pod}")


def _pod(node: int, number: int) -> Manifest:
    workload = f"w{(node * PODS + number) // OF_ONE_WORKLOAD}"
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload, "uid": workload, "controller": True}
    container = {"name": "main", "resources": {"requests": {"cpu": "2", "memory": "8Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{node}-{number}", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"nodeName": f"n{node}", "priority": 9500, "containers": [container]},
        "status": {"phase": "Running"},
    }


def _measured(node: int, chance: random.Random, now: int) -> Manifest:
    pods = [
        {
            "namespace": "default",
            "name": f"p{node}-{number}",
            "podUsage": {
                "resources": {"cpu": f"{chance.randint(50, 1900)}m", "memory": f"{chance.randint(100, 7900)}Mi"}
            },
        }
        for number in range(PODS)
    ]
    system = {"resources": {"cpu": f"{chance.randint(500, 3000)}m", "memory": "8Gi"}}
    return {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeMetric",
        "metadata": {"name": f"n{node}"},
        "status": {
            "updateTime": rfc3339(now),
            "nodeMetric": {"nodeUsage": {"resources": {"cpu": "40", "memory": "160Gi"}}, "systemUsage": system},
            "podsMetric": pods,
        },
    }


def _written(store: Store, decisions: list[Decision]) -> Iterator[Event]:
    """What the decisions make of the nodes."""
    for decision in decisions:
        for mutation in decision.mutations:
            there = store.get(mutation.key)
            if there is not None and mutation.patch and mutation.key.kind == "Node":
                yield store.put(there.changed(status=merge(there.status, mutation.patch)))
            elif there is None and mutation.manifest:
                yield store.put(from_manifest(mutation.manifest, uid=str(mutation.key)))
