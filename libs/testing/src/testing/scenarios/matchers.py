"""What an ``expect`` step can ask of single pods and objects, of evictions, replicas, traffic and control groups."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube import Key, Manifest, Object
from testing.scenarios.membership import is_ready, node_of, phase_of
from testing.scenarios.refs import Ref, follow, pod_title
from testing.scenarios.scenario import Mismatch
from testing.scenarios.target import Target
from testing.scenarios.values import Range, any_of, holds, nano

NOTHING = object()
"""Stands for a condition that the scenario does not make."""


@dataclass(frozen=True, slots=True)
class PodMatcher:
    """``pods``: one pod and what is said of it. A pod that is expected to be anything must exist."""

    pod: tuple[str, str]
    wanted: Manifest

    def mismatch(self, target: Target) -> Mismatch | None:
        pod = target.store().get(Key("Pod", *self.pod))
        exists = self.wanted.get("exists", True)
        if (pod is not None) != exists:
            return self._fault("exists", exists, pod is not None)
        if pod is None:
            return None
        return next((fault for name in self.wanted if (fault := self._compare(name, pod, target))), None)

    def _compare(self, name: str, pod: Object, target: Target) -> Mismatch | None:
        wanted = self.wanted[name]
        if name == "message":
            message = target.pod_message(pod)
            return (
                None if str(wanted).lower() in message.lower() else self._fault(name, f"one with {wanted!r}", message)
            )
        got = _POD_FACTS[name](pod)
        return None if any_of(wanted, got) else self._fault(name, wanted, got)

    def _fault(self, name: str, wanted: Any, got: Any) -> Mismatch:
        return Mismatch(f"pods.{pod_title(self.pod)}.{name}", shown(wanted), shown(got))


_POD_FACTS: dict[str, Callable[[Object], Any]] = {
    "node": lambda pod: node_of(pod) or None,
    "phase": phase_of,
    "ready": is_ready,
    "exists": lambda pod: True,
}


@dataclass(frozen=True, slots=True)
class EvictedMatcher:
    """``evicted`` and ``notEvicted``: pods whose eviction was, or was not, ordered since the start."""

    pods: tuple[tuple[str, str], ...]
    evicted: bool

    def mismatch(self, target: Target) -> Mismatch | None:
        ordered = target.evictions()
        wrong = [pod for pod in self.pods if (pod in ordered) != self.evicted]
        if not wrong:
            return None
        name = "evicted" if self.evicted else "notEvicted"
        return Mismatch(
            name, ", ".join(map(pod_title, wrong)), "evicted: " + (", ".join(map(pod_title, ordered)) or "none")
        )


@dataclass(frozen=True, slots=True)
class EvictedCountMatcher:
    """``evictedCount``: how many evictions were ordered since the start."""

    wanted: Range

    def mismatch(self, target: Target) -> Mismatch | None:
        ordered = target.evictions()
        if len(ordered) in self.wanted:
            return None
        names = f" ({', '.join(map(pod_title, ordered))})" if ordered else ""
        return Mismatch("evictedCount", str(self.wanted), f"{len(ordered)}{names}")


@dataclass(frozen=True, slots=True)
class Condition:
    """What has to be so of one value; everything that is given must hold. Quantities compare by value."""

    equals: Any = NOTHING
    minimum: Any = NOTHING
    maximum: Any = NOTHING
    approx: Any = NOTHING
    tolerance: Any = NOTHING
    contains: Any = NOTHING
    exists: Any = NOTHING

    def unmet(self, got: Any) -> str:
        """The first part that does not hold, in words; "" when all hold."""
        if self.exists is not NOTHING and (got is not None) != self.exists:
            return "something" if self.exists else "nothing"
        if self.equals is not NOTHING and not any_of(self.equals, got):
            return f"one of {shown(self.equals)}" if isinstance(self.equals, list) else shown(self.equals)
        if self.contains is not NOTHING and not holds(self.contains, got):
            return f"what contains {shown(self.contains)}"
        return self._out_of_bounds(nano(got))

    def _out_of_bounds(self, got: int | None) -> str:
        if self.minimum is not NOTHING and (got is None or got < (nano(self.minimum) or 0)):
            return f"at least {shown(self.minimum)}"
        if self.maximum is not NOTHING and (got is None or got > (nano(self.maximum) or 0)):
            return f"at most {shown(self.maximum)}"
        if self.approx is not NOTHING:
            middle, width = nano(self.approx) or 0, nano(self.tolerance) or 0
            if got is None or abs(got - middle) > width:
                return f"{shown(self.approx)} within {shown(self.tolerance)}"
        return ""


@dataclass(frozen=True, slots=True)
class ObjectMatcher:
    """``object``: a value of an object, as a user reads it."""

    ref: Ref
    path: tuple[str | int, ...]
    path_title: str
    condition: Condition

    def mismatch(self, target: Target) -> Mismatch | None:
        store = target.store()
        found = store.get(self.ref.key(store))
        got = follow(found.manifest(), self.path) if found else None
        unmet = self.condition.unmet(got)
        if not unmet:
            return None
        title = f"object {self.ref} {self.path_title}".rstrip()
        return Mismatch(title, unmet, shown(got) if found else "no such object")


@dataclass(frozen=True, slots=True)
class ReplicasMatcher:
    """``replicas``: how many replicas are wanted of a scale target or an inference service."""

    ref: Ref
    wanted: Range

    def mismatch(self, target: Target) -> Mismatch | None:
        got = target.replicas(self.ref.key(target.store()))
        if got is not None and got in self.wanted:
            return None
        return Mismatch(f"replicas {self.ref}", str(self.wanted), shown(got))


@dataclass(frozen=True, slots=True)
class TrafficMatcher:
    """``traffic``: an inference service's split in percent; a revision that is not listed gets nothing."""

    ref: Ref
    wanted: dict[str, int]

    def mismatch(self, target: Target) -> Mismatch | None:
        got = target.traffic(self.ref.key(target.store()))
        if all(self.wanted.get(name, 0) == got.get(name, 0) for name in {*self.wanted, *got}):
            return None
        return Mismatch(f"traffic {self.ref}", shown(self.wanted), shown(dict(sorted(got.items()))))


@dataclass(frozen=True, slots=True)
class CgroupMatcher:
    """``cgroup``: what the node agent wrote into one file, as text."""

    node: str
    path: str
    wanted: tuple[str, ...]

    def mismatch(self, target: Target) -> Mismatch | None:
        got = target.cgroup(self.node, self.path)
        if got is not None and got.strip() in self.wanted:
            return None
        return Mismatch(
            f"cgroup {self.node} {self.path}", " or ".join(self.wanted), "no such file" if got is None else got.strip()
        )


def shown(value: Any) -> str:
    """A value as a report prints it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "nothing"}[value]
    return value if isinstance(value, str) else repr(value)
