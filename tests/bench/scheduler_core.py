"""The core of gang_scheduler with objects to decide on: no bus, no commit. What is measured is the time of each step."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gang_scheduler.domain.core import SchedulerCore
from kube import Decision, Event, Key, Manifest, Object, Outcome, Verb

NOW = 1_767_225_600_000
GROUP = "PodGroup.scheduling.volcano.sh"
CREATED = "2026-01-01T00:00:00Z"


@dataclass(slots=True)
class Timing:
    """Seconds spent in each step."""

    arrive: float = 0.0
    decide: float = 0.0
    assume: float = 0.0
    fold: float = 0.0
    pods: int = 0

    @property
    def decided(self) -> float:
        """Pods a second, of the time in which was decided."""
        return self.pods / self.decide


def node(name: str, cpu: int, gpus: int) -> Object:
    """A ready node."""
    allocatable = {"cpu": cpu, "memory": f"{4 * cpu}Gi", "pods": 110}
    if gpus:
        allocatable["nvidia.com/gpu"] = gpus
    metadata: Manifest = {"labels": {"kubernetes.io/hostname": name, "zone": f"z{hash_of(name) % 3}"}}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    return Object(Key("Node", "", name), f"uid-{name}", metadata, {"spec": {}}, status)


def hash_of(text: str) -> int:
    """A number that is the same in every run."""
    return sum((index + 1) * ord(letter) for index, letter in enumerate(text))


def gang(name: str, size: int, body: Manifest) -> list[Object]:
    """A group that was let in, and its pods, which share their spec."""
    spec = {"minMember": size, "queue": "default"}
    group = Object(
        Key(GROUP, "default", name), f"uid-{name}", {"creationTimestamp": CREATED}, {"spec": spec}, {"phase": "Inqueue"}
    )
    return [group, *(pod(f"{name}-{number}", body, name) for number in range(size))]


def pod(name: str, body: Manifest, group: str = "") -> Object:
    """A pending pod."""
    annotations = {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": "worker"} if group else {}
    metadata = {"creationTimestamp": CREATED, "annotations": annotations, "labels": {"volcano.sh/task-index": name}}
    return Object(Key("Pod", "default", name), f"uid-{name}", metadata, body, {"phase": "Pending"})


def template(**requests: object) -> Manifest:
    """A pod body with one container."""
    return {
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], "schedulerName": "tidegate"}
    }


def cluster(nodes: int, gpus: int = 0) -> SchedulerCore:
    """A core that knows ``nodes`` empty nodes and one open queue."""
    core = SchedulerCore()
    core.fold([Event(None, node(f"node-{number:05}", 64, gpus if number % 2 else 0)) for number in range(nodes)], NOW)
    core.hear("queue_manager", Decision("EntitlementsComputed", Key("", "", ""), payload={"queues": {"default": {}}}))
    return core


def run(core: SchedulerCore, arrivals: Iterator[list[Object]], phase: str = "Running") -> Timing:
    """Let each batch of objects arrive, decide on it, and fold what comes of it."""
    timing = Timing()
    known: dict[Key, Object] = {}
    for number, arrival in enumerate(arrivals):
        known.update((item.key, item) for item in arrival)
        timing.arrive += timed(lambda batch=arrival: core.fold([Event(None, item) for item in batch], NOW))  # type: ignore[misc]
        made: list[Decision] = []
        timing.decide += timed(lambda: made.extend(core.decide(NOW, frozenset())))  # noqa: B023
        for index, decision in enumerate(made):
            identity = f"{number}/{index}"
            timing.assume += timed(lambda: core.assume(identity, decision))  # noqa: B023
        events = [[bound(known, decision, phase)] for decision in made]
        for index, (decision, sets) in enumerate(zip(made, events, strict=True)):
            outcome = Outcome(f"{number}/{index}", decision.name, decision.subject, True)
            for change in sets:
                timing.fold += timed(lambda: core.fold(change, NOW))  # noqa: B023
            timing.fold += timed(lambda: core.settle(outcome))  # noqa: B023
            timing.pods += sum(1 for mutation in decision.mutations if mutation.verb is Verb.BIND)
    return timing


def bound(known: dict[Key, Object], decision: Decision, phase: str) -> list[Event]:
    """The facts that a gateway makes of a decision."""
    events = []
    for mutation in decision.mutations:
        old = known[mutation.key]
        if mutation.verb is Verb.BIND:
            spec = {**old.spec, "nodeName": mutation.node}
            new = old.changed(body={**old.body, "spec": spec}, status={"phase": phase})
        else:
            new = old.changed(status={**old.status, **(mutation.patch or {})})
        known[mutation.key] = new
        events.append(Event(old, new))
    return events


def timed(action: Callable[[], object]) -> float:
    """Seconds that ``action`` takes."""
    start = time.process_time()
    action()
    return time.process_time() - start


def gangs(count: int, size: int, bodies: list[Manifest], together: int = 1) -> Iterator[list[Object]]:
    """``count`` gangs, ``together`` of them in each arrival."""
    for first in range(0, count, together):
        numbers = range(first, min(count, first + together))
        yield [item for number in numbers for item in gang(f"g{number:06}", size, bodies[number % len(bodies)])]


def singles(count: int, bodies: list[Manifest], together: int) -> Iterator[list[Object]]:
    """``count`` single pods of mixed templates."""
    for first in range(0, count, together):
        numbers = range(first, min(count, first + together))
        yield [pod(f"p{number:06}", bodies[(7 * number) % len(bodies)]) for number in numbers]
