"""What a container's requests and limits mean for the kernel: CPU time, CPU weight, memory, CPU set."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    """The limits of the pod as a whole: the sum of its containers', where each of them has one."""
    parts = list(containers)
    cpu, memory = [part.cpu_milli for part in parts], [part.memory_bytes for part in parts]
    return Limits(
        cpu_milli=None if None in cpu else sum(amount or 0 for amount in cpu) or None,
        cpu_request_milli=sum(part.cpu_request_milli for part in parts),
        memory_bytes=None if None in memory else sum(amount or 0 for amount in memory) or None,
        pids=pids,
        cpu_set=cpu_set(pod),
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
