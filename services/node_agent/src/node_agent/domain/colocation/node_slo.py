"""The rules of a node, read from the spec of a NodeSLO (slo.koordinator.sh/v1alpha1).

What is left out, or is nothing that can be read, is as Koordinator's defaults say: every switch is off.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from kube import Manifest
from kube.colocation import BANDS
from kube.node_slo import DEFAULTS, completed
from node_agent.domain.colocation.network_rules import NetworkRule, bandwidth, network_rule

Word = TypeVar("Word", bound=StrEnum)


class Qos(StrEnum):
    """How much a pod may be disturbed: LSE and LSR have CPUs of their own, LS shares, BE takes what is left."""

    LSE = "LSE"
    LSR = "LSR"
    LS = "LS"
    BE = "BE"
    SYSTEM = "SYSTEM"


class SuppressPolicy(StrEnum):
    """By what best effort is held back."""

    CPUSET = "cpuset"
    QUOTA = "cfsQuota"
    WEIGHT = "weight"
    """Ours: the kernel's least weight, and the quota only while best effort disturbs somebody or nothing fresh was measured."""


BY_QUOTA = (SuppressPolicy.QUOTA, SuppressPolicy.WEIGHT)


class BurstPolicy(StrEnum):
    """What lets an online pod go beyond its limit for a while."""

    NONE = "none"
    KERNEL = "cpuBurstOnly"
    QUOTA = "cfsQuotaBurstOnly"
    BOTH = "auto"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """``resourceUsedThresholdWithBE``. Percents are of the node's capacity unless something else is said."""

    enabled: bool
    policy: SuppressPolicy
    suppress_percent: int
    suppress_min_percent: int | None
    memory_percent: int
    memory_lower_percent: int | None
    cpu_percent: int | None
    cpu_lower_percent: int | None
    willing_priority: int | None
    """The highest priority of a pod, beside best effort, that may be evicted for what the node uses."""
    satisfied_lower_percent: int | None
    satisfied_upper_percent: int | None
    busy_percent: int
    window_seconds: int
    by_allocatable: bool
    allocatable_priority: int | None
    cpu_allocatable_percent: int | None
    cpu_allocatable_lower_percent: int | None
    memory_allocatable_percent: int | None
    memory_allocatable_lower_percent: int | None


@dataclass(frozen=True, slots=True)
class Burst:
    """``cpuBurstStrategy``. Percents of a container's limit; ``period_seconds`` -1 is without end."""

    policy: BurstPolicy
    kernel_percent: int
    quota_percent: int
    period_seconds: int
    share_pool_percent: int

    @property
    def by_kernel(self) -> bool:
        return self.policy in (BurstPolicy.KERNEL, BurstPolicy.BOTH)

    @property
    def by_quota(self) -> bool:
        return self.policy in (BurstPolicy.QUOTA, BurstPolicy.BOTH)


@dataclass(frozen=True, slots=True)
class MemoryQos:
    """How a container's memory is protected: percents of its request, and of the way from there to its limit."""

    enabled: bool = False
    min_percent: int = 0
    low_percent: int = 0
    throttling_percent: int = 0
    reclaim_percent: int = 0
    """Of a container's limit: from so much on its memory is taken back in the background; 0 is never."""
    reclaim_permill: int = 0
    """Of a container's limit: so far below that it is taken back."""


@dataclass(frozen=True, slots=True)
class Resctrl:
    """The part of the last-level cache and of the memory bandwidth that a class may use, in percent."""

    cache_start_percent: int = 0
    cache_end_percent: int = 100
    bandwidth_percent: int = 100


@dataclass(frozen=True, slots=True)
class Disk:
    """Limits of one device (``name`` as in /dev); 0 is none. ``weight_percent`` is 100 for an equal part."""

    name: str
    read_bps: int = 0
    write_bps: int = 0
    read_iops: int = 0
    write_iops: int = 0
    weight_percent: int = 100


@dataclass(frozen=True, slots=True)
class ClassRules:
    """What holds for all pods of one QoS class. ``idle`` lets them run only where nobody else wants to."""

    idle: bool = False
    memory: MemoryQos = MemoryQos()
    resctrl: Resctrl | None = None
    disks: tuple[Disk, ...] = ()
    network: NetworkRule | None = None


@dataclass(frozen=True, slots=True)
class HostApplication:
    """A program of the node that is no pod: its control group below the mount, and how it is to be taken."""

    name: str
    qos: Qos
    group: str
    priority: str = ""
    """Its band: ``koord-prod``, ``koord-batch``."""


@dataclass(frozen=True, slots=True)
class NodeSlo:
    """Everything that is asked of a node."""

    thresholds: Thresholds
    burst: Burst
    classes: Mapping[Qos, ClassRules]
    host_applications: tuple[HostApplication, ...] = ()
    bandwidth: int = 0
    """What the uplink carries, in bits per second; 0 is what the hardware says."""

    def of(self, qos: Qos) -> ClassRules:
        """The rules of a class; LSE has those of LSR."""
        return self.classes.get(Qos.LSR if qos is Qos.LSE else qos, ClassRules())


MOST_PRIORITY = BANDS["mid"][1]
"""Pods above it serve: none is ever evicted by its node."""
WINDOW_SECONDS = 60
"""Over which best effort's CPU is averaged, where the rules do not say."""

_THRESHOLDS, _BURST = "resourceUsedThresholdWithBE", "cpuBurstStrategy"
_NO_BURST = Burst(BurstPolicy.NONE, 0, 100, -1, 100)
_CLASSES = {Qos.LSR: "lsrClass", Qos.LS: "lsClass", Qos.BE: "beClass", Qos.SYSTEM: "systemClass"}
_BASES = {
    "CgroupRoot": "",
    "Kubepods": "kubepods",
    "KubepodsBurstable": "kubepods/burstable",
    "KubepodsBesteffort": "kubepods/besteffort",
}


def node_slo(spec: Manifest) -> NodeSlo:
    """The rules that ``spec`` tells."""
    spec = completed(spec)
    qos = _part(spec, "resourceQOSStrategy")
    return NodeSlo(
        _thresholds(_part(spec, _THRESHOLDS)),
        burst_of(_part(spec, _BURST), burst_of(DEFAULTS[_BURST], _NO_BURST)),
        {name: _class(_part(qos, key)) for name, key in _CLASSES.items()},
        tuple(_host_application(one) for one in _parts(spec, "hostApplications")),
        bandwidth(_part(spec, "systemStrategy").get("totalNetworkBandwidth", 0)),
    )


def burst_of(part: Manifest, otherwise: Burst) -> Burst:
    """A burst strategy, or a pod's own word on it laid over the node's."""
    return Burst(
        _word(part, "policy", BurstPolicy, otherwise.policy),
        _number(part, "cpuBurstPercent", otherwise.kernel_percent),
        _number(part, "cfsQuotaBurstPercent", otherwise.quota_percent),
        _number(part, "cfsQuotaBurstPeriodSeconds", otherwise.period_seconds),
        _number(part, "sharePoolThresholdPercent", otherwise.share_pool_percent),
    )


def memory_of(part: Manifest, otherwise: MemoryQos) -> MemoryQos:
    """Rules for memory, or a pod's own word on them laid over those of its class."""
    return MemoryQos(
        bool(part.get("enable", otherwise.enabled)),
        _number(part, "minLimitPercent", otherwise.min_percent),
        _number(part, "lowLimitPercent", otherwise.low_percent),
        _number(part, "throttlingPercent", otherwise.throttling_percent),
        _number(part, "wmarkRatio", otherwise.reclaim_percent),
        _number(part, "wmarkScalePermill", otherwise.reclaim_permill),
    )


def disks_of(part: Manifest) -> tuple[Disk, ...]:
    """The devices that a ``blkioQOS`` limits; volume groups and volumes of pods are no devices of the machine."""
    if not part.get("enable", True):
        return ()
    return tuple(_disk(one) for one in _parts(part, "blocks") if one.get("name"))


def _thresholds(part: Manifest) -> Thresholds:
    known = DEFAULTS[_THRESHOLDS]
    return Thresholds(
        bool(part.get("enable", False)),
        _word(part, "cpuSuppressPolicy", SuppressPolicy, SuppressPolicy.CPUSET),
        _number(part, "cpuSuppressThresholdPercent", known["cpuSuppressThresholdPercent"]),
        _maybe(part, "cpuSuppressMinPercent"),
        _number(part, "memoryEvictThresholdPercent", known["memoryEvictThresholdPercent"]),
        _maybe(part, "memoryEvictLowerPercent"),
        _maybe(part, "cpuEvictThresholdPercent"),
        _maybe(part, "cpuEvictLowerPercent"),
        _priority(part, "evictEnabledPriorityThreshold"),
        _maybe(part, "cpuEvictBESatisfactionLowerPercent"),
        _maybe(part, "cpuEvictBESatisfactionUpperPercent"),
        _number(part, "cpuEvictBEUsageThresholdPercent", known["cpuEvictBEUsageThresholdPercent"]),
        _number(part, "cpuEvictTimeWindowSeconds", WINDOW_SECONDS),
        part.get("cpuEvictPolicy") == "evictByAllocatable",
        _priority(part, "allocatableEvictPriorityThreshold"),
        _maybe(part, "cpuAllocatableEvictThresholdPercent"),
        _maybe(part, "cpuAllocatableEvictLowerPercent"),
        _maybe(part, "memoryAllocatableEvictThresholdPercent"),
        _maybe(part, "memoryAllocatableEvictLowerPercent"),
    )


def _class(part: Manifest) -> ClassRules:
    names = ("cpuQOS", "memoryQOS", "resctrlQOS", "blkioQOS", "networkQOS")
    cpu, memory, cache, disks, network = (_part(part, name) for name in names)
    # Kernels as they are have no group identity; below everybody else is what an idle group is.
    idle = bool(cpu.get("enable")) and (_number(cpu, "groupIdentity", 0) < 0 or _number(cpu, "schedIdle", 0) > 0)
    return ClassRules(
        idle,
        memory_of(memory, MemoryQos(reclaim_percent=95, reclaim_permill=20)),
        _resctrl(cache) if cache.get("enable") else None,
        disks_of(disks) if disks.get("enable") else (),
        network_rule(network) if network.get("enable") else None,
    )


def _resctrl(part: Manifest) -> Resctrl:
    return Resctrl(
        _number(part, "catRangeStartPercent", 0),
        _number(part, "catRangeEndPercent", 100),
        _number(part, "mbaPercent", 100),
    )


def _disk(block: Manifest) -> Disk:
    limits = _part(block, "ioCfg")
    read_bps, write_bps, read_iops, write_iops = (
        _number(limits, name, 0) for name in ("readBPS", "writeBPS", "readIOPS", "writeIOPS")
    )
    weight = _number(limits, "ioWeightPercent", 100)
    return Disk(str(block["name"]), read_bps, write_bps, read_iops, write_iops, weight)


def _host_application(one: Manifest) -> HostApplication:
    path = _part(one, "cgroupPath")
    parts = (_BASES.get(str(path.get("base") or "CgroupRoot"), ""), path.get("parentDir"), path.get("relativePath"))
    group = "/".join(str(part).strip("/") for part in parts if part)
    return HostApplication(
        str(one.get("name") or ""), _word(one, "qos", Qos, Qos.LS), group, str(one.get("priority") or "")
    )


def _part(manifest: Manifest, name: str) -> dict[str, Any]:
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}


def _parts(manifest: Manifest, name: str) -> list[dict[str, Any]]:
    found = manifest.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _maybe(part: Manifest, name: str) -> int | None:
    try:
        return None if part.get(name) is None else int(part[name])
    except (TypeError, ValueError):
        return None


def _priority(part: Manifest, name: str) -> int | None:
    """A highest priority of pods that may be evicted; one that would take pods that serve is none."""
    found = _maybe(part, name)
    return found if found is not None and found <= MOST_PRIORITY else None


def _number(part: Manifest, name: str, otherwise: int) -> int:
    found = _maybe(part, name)
    return otherwise if found is None else found


def _word(part: Manifest, name: str, kind: type[Word], otherwise: Word) -> Word:
    try:
        return kind(part[name])
    except (KeyError, ValueError):
        return otherwise


NO_RULES = node_slo({})
"""What holds on a node that has no NodeSLO."""
