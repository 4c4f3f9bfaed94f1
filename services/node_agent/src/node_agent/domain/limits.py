"""What a container's requests and limits mean for the kernel: CPU time, CPU weight, memory, CPU set."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kube import Manifest
from kube.normalization import PLAIN_MILLI
from resources import QuantityError, parse_amounts, parse_milli

PERIOD_US = 100_000

_CPU_SET_ANNOTATION = "scheduling.koordinator.sh/resource-status"
_LENT_CPU, _LENT_MEMORY = (
    tuple(f"{domain}/{tier}-{name}" for tier in ("batch", "mid") for domain in ("kubernetes.io", "koordinator.sh"))
    for name in ("cpu", "memory")
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is put in force for one group of processes; None leaves it unlimited, "" means every CPU."""

    cpu_milli: int | None = None
    cpu_request_milli: int = 0
    memory_bytes: int | None = None
    pids: int | None = None
    cpu_set: str = ""
    core_milli: int = PLAIN_MILLI
    """How much a core does, in thousandths of the one that ``cpu_milli`` counts."""

    @property
    def quota_us(self) -> int | None:
        """CPU time per period of PERIOD_US; the kernel takes no less than a millisecond."""
        if self.cpu_milli is None:
            return None
        plain = max(1_000, self.cpu_milli * PERIOD_US // 1000)
        return max(1_000, -(-plain * PLAIN_MILLI // self.core_milli))

    @property
    def shares(self) -> int:
        """cgroup v1's CPU weight, 2 … 262144, as a kubelet computes it."""
        return min(262_144, max(2, self.cpu_request_milli * 1024 // 1000))

    @property
    def weight(self) -> int:
        """cgroup v2's CPU weight, 1 … 10000, as runc converts it from shares."""
        return 1 + (self.shares - 2) * 9_999 // 262_142


def container_limits(pod: Manifest, container: Manifest) -> Limits:
    """The limits of one container; amounts that cannot be read count as not given (admission refuses them)."""
    resources = container.get("resources") or {}
    limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
    cpu, memory = _first(limits, ("cpu", *_LENT_CPU)), _first(limits, ("memory", *_LENT_MEMORY))
    asked = _first(requests, ("cpu", *_LENT_CPU))
    own = cpu_set(pod)
    return Limits(
        # A quota would only throttle a pod on CPUs that are its own.
        cpu_milli=None if own else cpu or None,
        cpu_request_milli=asked if asked is not None else cpu or 0,
        memory_bytes=memory or None,
        cpu_set=own,
    )


def pod_limits(pod: Manifest, containers: Iterable[Limits], pids: int) -> Limits:
    """The limits of the pod as a whole: the sum of its containers', where each of them has one, and its overhead."""
    parts = list(containers)
    overhead = _amounts((pod.get("spec") or {}).get("overhead"))
    more_cpu, more_memory = _first(overhead, ("cpu", *_LENT_CPU)) or 0, _first(overhead, ("memory", *_LENT_MEMORY)) or 0
    return Limits(
        cpu_milli=_together((part.cpu_milli for part in parts), more_cpu),
        cpu_request_milli=sum(part.cpu_request_milli for part in parts) + more_cpu,
        memory_bytes=_together((part.memory_bytes for part in parts), more_memory),
        pids=pids,
        cpu_set=cpu_set(pod),
    )


def whole_limits(pod: Manifest) -> Limits:
    """The limits of a pod over its whole life, as a kubelet sets them.

    What runs together has them together; an init container runs beside the sidecars before it. One that has no limit leaves the
    whole without.
    """
    spec = pod.get("spec") or {}
    sidecars: list[Limits] = []
    beginnings: list[Limits] = []
    for one in spec.get("initContainers") or []:
        own = container_limits(pod, one)
        beginnings.append(pod_limits(pod, [*sidecars, own], 0))
        if one.get("restartPolicy") == "Always":
            sidecars.append(own)
    running = pod_limits(pod, [*(container_limits(pod, one) for one in spec.get("containers") or []), *sidecars], 0)
    stages = (running, *beginnings)
    return replace(
        running,
        cpu_milli=_most(stage.cpu_milli for stage in stages),
        cpu_request_milli=max(stage.cpu_request_milli for stage in stages),
        memory_bytes=_most(stage.memory_bytes for stage in stages),
    )


def container_request_bytes(container: Manifest, limits: Limits) -> int:
    """The memory that a container asks for; its limit where it names none."""
    asked = _first(_amounts((container.get("resources") or {}).get("requests")), ("memory", *_LENT_MEMORY))
    return asked if asked is not None else limits.memory_bytes or 0


def lends(container: Manifest) -> bool:
    """Whether a container asks for lent resources."""
    resources = container.get("resources") or {}
    named = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return any(name in named for name in (*_LENT_CPU, *_LENT_MEMORY))


def cpu_set(pod: Manifest) -> str:
    """The CPUs that the scheduler chose for the pod (``0-3,8``), or "" for all."""
    text = ((pod.get("metadata") or {}).get("annotations") or {}).get(_CPU_SET_ANNOTATION)
    try:
        return str(json.loads(text).get("cpuset") or "") if text else ""
    except (ValueError, AttributeError):
        return ""


def _together(amounts: Iterable[int | None], more: int) -> int | None:
    parts = list(amounts)
    if None in parts:
        return None
    total = sum(amount or 0 for amount in parts)
    return total + more if total else None


def _most(amounts: Iterable[int | None]) -> int | None:
    parts = list(amounts)
    return None if None in parts else max(amount or 0 for amount in parts)


def _amounts(manifest: Mapping[str, str] | None) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for name, value in (manifest or {}).items():
        try:
            # Lent CPU counts milli-cores as whole units already.
            amounts[name] = parse_milli(value) if name == "cpu" else parse_amounts({name: value})[name]
        except QuantityError:
            continue
    return amounts


def _first(amounts: Mapping[str, int], names: Iterable[str]) -> int | None:
    return next((amounts[name] for name in names if name in amounts), None)
