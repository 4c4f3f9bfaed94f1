"""The requests that wait for a replica: who may wait, who goes on, and what the others are told."""

from dataclasses import dataclass, field

from inference_gateway.domain.serving.directory import Directory
from inference_gateway.domain.serving.replica import Pool
from inference_gateway.domain.serving.service import Service
from kube import Key, Manifest


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is not the service's: the status of HTTP, and a body that says what and why."""

    status: int
    body: Manifest


@dataclass(frozen=True, slots=True)
class Goal:
    """What a request waits for: a replica of ``pool`` (None: that one of the revisions may get requests at all)."""

    service: Service
    pool: Pool | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many may wait for one pool and in all, and how long."""

    each: int
    total: int
    seconds: int


@dataclass(slots=True)
class Waiting:
    """How many wait, by what they wait for."""

    bounds: Bounds
    counts: dict[tuple[Key, Pool | None], int] = field(default_factory=dict)
    total: int = 0

    def enter(self, goal: Goal) -> Refusal | None:
        """One more waits; or why it may not."""
        place = goal.service.key, goal.pool
        count = self.counts.get(place, 0)
        if count >= self.bounds.each or self.total >= self.bounds.total:
            words = f"{count} requests wait for {_named(goal)} already, and {self.total} in all"
            limits = f"at most {self.bounds.each} may, and {self.bounds.total} in all"
            return _unavailable(goal, "TooManyWaiting", f"no replica is ready, {words}; {limits}")
        self.counts[place] = count + 1
        self.total += 1
        return None

    def leave(self, goal: Goal) -> None:
        """It waits no longer."""
        place = goal.service.key, goal.pool
        self.counts[place] -= 1
        self.total -= 1
        if not self.counts[place]:
            del self.counts[place]

    def by_service(self) -> dict[Key, int]:
        """How many wait for something of each service."""
        found: dict[Key, int] = {}
        for (service, _), count in self.counts.items():
            found[service] = found.get(service, 0) + count
        return found


def goal_of(directory: Directory, host: str, path: str, number: int) -> Goal | Refusal:
    """What the request waits for whose share is decided by ``number``, or what it is told at once."""
    found = directory.meant(host, path)
    if found is None:
        return _unknown(directory, host, path)
    service, component = found
    goal = Goal(service, service.parts[component].choose(number))
    if service.is_stopped:
        words = "it is stopped: its annotation serving.kserve.io/stop says so"
        return _unavailable(goal, "Stopped", words)
    return goal


def too_late(goal: Goal, seconds: int) -> Refusal:
    """What a request is told that waited as long as it may."""
    return _unavailable(goal, "NoReplicaReady", f"no replica of {_named(goal)} became ready within {seconds} s")


def _unknown(directory: Directory, host: str, path: str) -> Refusal:
    if names := directory.namesakes(host):
        words = f"{host} is the name of services in several namespaces: say which one ({', '.join(names)})"
        return Refusal(404, {"error": words, "reason": "AmbiguousName"})
    sharing = directory.sharing(path)
    if sharing:
        hosts = ", ".join(f"{name}.{directory.domain}" for name in sharing)
        words = f"the model of {path} is one of several services: name one of them as the host ({hosts})"
        return Refusal(404, {"error": words, "reason": "AmbiguousModel"})
    words = f"no inference service answers for host {host} and path {path}"
    return Refusal(404, {"error": words, "reason": "UnknownService"})


def _unavailable(goal: Goal, reason: str, words: str) -> Refusal:
    key = goal.service.key
    return Refusal(503, {"error": words, "reason": reason, "service": key.name, "namespace": key.namespace})


def _named(goal: Goal) -> str:
    return goal.pool[1] if goal.pool else goal.service.key.name
