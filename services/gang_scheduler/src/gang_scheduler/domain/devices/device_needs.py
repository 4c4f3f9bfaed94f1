"""What a pod asks of the devices of its node: cards or shares of them, CPUs of its own, one NUMA node."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

from gang_scheduler.domain.devices.card_wishes import WISHES, CardWish, PartitionWish, wish_of
from gang_scheduler.domain.devices.cpu_binding import RESOURCE_SPEC, USUAL, Binding, binding_of
from gang_scheduler.domain.devices.mig_cards import SliceNeed, slice_needs
from gang_scheduler.domain.devices.nics import JOINT, Joint, NicNeed, joint_of, nic_need
from gang_scheduler.domain.terms.load_estimate import FACTORS, USUAL_LOAD, LoadTraits, own_factors
from gang_scheduler.domain.terms.node_rules import Demands
from kube.card_names import (
    CARD_MEMORY,
    GPU,
    GPU_CORE,
    GPU_MEMORY,
    GPU_RATIO,
    GPU_SHARED,
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_NUMBER,
    VGPU_PERCENT,
    WHOLE_CARDS,
)
from kube.colocation import BANDS, CLASS_LABEL, QOS_LABEL
from kube.json_text import read_json
from resources import Amounts, QuantityError, parse_amounts

VOLCANO_POLICY, NUMA_SPEC = "volcano.sh/numa-topology-policy", "scheduling.koordinator.sh/numa-topology-spec"
_LABELS = frozenset({QOS_LABEL, CLASS_LABEL, VOLCANO_POLICY})
_ANNOTATIONS = WISHES | {VOLCANO_POLICY, NUMA_SPEC, JOINT, FACTORS}
"""Where traits are written; RESOURCE_SPEC counts only where the QoS class says that the pod gets CPUs of its own."""

_PROD = BANDS["prod"]
_BANDS = (BANDS["free"][0], _PROD[1])


class NumaPolicy(IntEnum):
    """How many NUMA nodes a pod may be on: any, the fewest if possible, the fewest, one."""

    NONE = 0
    BEST_EFFORT = 1
    RESTRICTED = 2
    SINGLE = 3


_POLICIES = {
    "besteffort": NumaPolicy.BEST_EFFORT,
    "restricted": NumaPolicy.RESTRICTED,
    "singlenumanode": NumaPolicy.SINGLE,
}


class Traits(NamedTuple):
    """What labels and annotations of a pod say about its place within a node."""

    pinned: bool = False
    """Whether it gets CPUs of its own."""

    policy: NumaPolicy = NumaPolicy.NONE
    binding: Binding = USUAL
    load: LoadTraits = USUAL_LOAD
    joint: Joint = Joint.NONE
    claims: tuple[str, ...] = ()
    """Its resource claims, as ClaimBook tells them."""

    apart: bool = False
    """Whether pods on one NUMA node and pods on several must not meet on its NUMA nodes."""

    unmet: str = ""
    """Why it cannot be of the runtime class that it names."""

    wish: CardWish | None = None
    """Which cards it wants."""

    demands: Demands | None = None
    """What its queue demands of its node."""


PLAIN = Traits()
_DAEMON = Traits(load=LoadTraits(exempt=True))


@dataclass(frozen=True, slots=True)
class CardNeed:
    """``count`` cards, and of each of them ``core`` percent, ``memory`` bytes or ``ratio`` percent of the memory."""

    resource: str
    count: int
    core: int = 100
    memory: int = 0
    ratio: int = 100
    virtual: bool = False
    """Whether each card is a virtual GPU, of which a card can be only so many."""

    wish: CardWish | None = None
    whole: bool = field(init=False, compare=False)
    """Whether nobody else can have any of a card then."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", self.core == 100 and self.ratio == 100 and not self.virtual)

    @property
    def partition(self) -> PartitionWish | None:
        """The partition that it asks for."""
        return self.wish.partition if self.wish else None

    @property
    def words(self) -> str:
        """What it asks for, in words."""
        parts = [f"{self.core} % of its cores"] if self.core else []
        parts += [f"{self.memory >> 20}Mi of its memory"] if self.memory else []
        parts += [f"{self.ratio} % of its memory"] if self.ratio else []
        one = "a whole one" if self.whole else f"of one card {' and '.join(parts)}"
        return f"needs {self.count} times {one}" if self.count > 1 else f"needs {one}"


@dataclass(frozen=True, slots=True)
class DeviceNeed:
    """``cpu`` (milli-cores) and ``memory`` (bytes) are the requests; ``cpus`` is how many CPUs are to be the pod's alone."""

    cards: CardNeed | None = None
    cpus: int = 0
    policy: NumaPolicy = NumaPolicy.NONE
    cpu: int = 0
    memory: int = 0
    binding: Binding = USUAL
    apart: bool = False
    nics: NicNeed | None = None
    slices: tuple[SliceNeed, ...] = ()
    special: bool = field(init=False, compare=False)
    """Whether it matters on every node; else only on those that keep pods within NUMA nodes."""

    only_cards: bool = field(init=False, compare=False)
    """Whether nothing but cards is asked for."""

    def __post_init__(self) -> None:
        asked = self.cards is not None or self.nics is not None or self.cpus > 0 or bool(self.slices)
        object.__setattr__(self, "special", asked or self.policy > NumaPolicy.BEST_EFFORT)
        others = self.cpus or self.policy or self.nics or self.slices
        object.__setattr__(self, "only_cards", self.cards is not None and not others)

    @property
    def intricate(self) -> bool:
        """Whether how often it fits shows only by trying."""
        wishes = self.cards is not None and self.cards.wish is not None
        return self.apart or wishes or self.nics is not None or (self.cpus > 0 and self.binding.required)

    @property
    def shares(self) -> bool:
        """Whether it asks for parts of cards."""
        return bool(self.slices) or (self.cards is not None and not self.cards.whole)

    @property
    def only_whole_cards(self) -> bool:
        return self.only_cards and self.cards is not None and self.cards.whole and self.cards.wish is None


def traits_of(
    labels: Mapping[str, str], annotations: Mapping[str, str], priority: int, owners: Sequence[Mapping[str, Any]] = ()
) -> Traits:
    """The traits of a pod; most have none."""
    if _LABELS.isdisjoint(labels) and _ANNOTATIONS.isdisjoint(annotations) and _is_prod(None, priority):
        return PLAIN if not _of_daemon(owners) else _DAEMON
    load = _load_traits(labels, annotations, priority, owners)
    qos = labels.get(QOS_LABEL)
    policy = annotations.get(VOLCANO_POLICY) or labels.get(VOLCANO_POLICY)
    spec = annotations.get(NUMA_SPEC)
    joint = joint_of(annotations.get(JOINT))
    wish = wish_of(annotations)
    if qos is None and policy is None and spec is None:
        return PLAIN if load is USUAL_LOAD and not joint and not wish else Traits(load=load, joint=joint, wish=wish)
    pinned = qos in ("LSR", "LSE") and _is_prod(labels.get(CLASS_LABEL), priority)
    binding = binding_of(annotations.get(RESOURCE_SPEC)) if pinned else USUAL
    own, exclusive = _numa_spec(spec)
    apart, numa = exclusive == "Required", numa_policy(policy or own)
    return Traits(pinned and binding.pins, numa, binding, load, joint, apart=apart, wish=wish)


def _load_traits(
    labels: Mapping[str, str], annotations: Mapping[str, str], priority: int, owners: Sequence[Mapping[str, Any]]
) -> LoadTraits:
    prod = _is_prod(labels.get(CLASS_LABEL), priority)
    exempt = _of_daemon(owners)
    if prod and not exempt and FACTORS not in annotations:
        return USUAL_LOAD
    return LoadTraits(prod, exempt, own_factors(annotations.get(FACTORS)))


def _of_daemon(owners: Sequence[Mapping[str, Any]]) -> bool:
    return bool(owners) and any(owner.get("kind") == "DaemonSet" for owner in owners)


def numa_policy(text: str | None) -> NumaPolicy:
    """The policy of that name, as Kubernetes, Volcano or Koordinator write it; NONE for any other text."""
    return _POLICIES.get((text or "").replace("-", "").lower(), NumaPolicy.NONE)


def device_need(spec: Mapping[str, Any], requests: Amounts, traits: Traits) -> DeviceNeed:
    """What a pod of ``spec``, with ``requests`` in all, asks of devices."""
    cpu = requests.get("cpu", 0)
    cpus = cpu // 1000 if traits.pinned and cpu % 1000 == 0 else 0
    cards, memory = card_need(spec, requests), requests.get("memory", 0)
    cards = replace(cards, wish=traits.wish) if cards and traits.wish else cards
    nics = nic_need(requests, traits.joint)
    slices = slice_needs(requests)
    return DeviceNeed(cards, cpus, traits.policy, cpu, memory, traits.binding, traits.apart, nics, slices)


def card_need(spec: Mapping[str, Any], requests: Amounts) -> CardNeed | None:
    """The cards that the requests mean; None when they mean none."""
    for name in WHOLE_CARDS:
        if requests.get(name):
            return CardNeed(name, requests[name])
    if requests.get(VGPU_NUMBER):
        return _virtual(spec, requests[VGPU_NUMBER])
    if requests.get(CARD_MEMORY):
        return CardNeed(CARD_MEMORY, 1, 0, requests[CARD_MEMORY] << 20, 0)
    return _share(requests)


def _virtual(spec: Mapping[str, Any], count: int) -> CardNeed:
    """Memory and cores are of each virtual GPU; where the containers differ, every one is as large as the largest."""
    most: Amounts = {}
    for amounts in _by_container(spec):
        if amounts.get(VGPU_NUMBER):
            for name in (VGPU_MEMORY, VGPU_CORES, VGPU_PERCENT):
                most[name] = max(most.get(name, 0), amounts.get(name, 0))
    memory, percent = most.get(VGPU_MEMORY, 0) << 20, most.get(VGPU_PERCENT, 0)
    # As upstream: who says nothing about memory gets all of it.
    ratio = 0 if memory else percent or 100
    return CardNeed(VGPU_NUMBER, count, most.get(VGPU_CORES, 0), memory, ratio, virtual=True)


def _share(requests: Amounts) -> CardNeed | None:
    """Koordinator's percentages and bytes are of all cards together; above one card only whole hundreds make sense."""
    named = [name for name in (GPU_CORE, GPU, GPU_RATIO, GPU_MEMORY, GPU_SHARED) if requests.get(name)]
    if not named:
        return None
    core = requests.get(GPU_CORE, 0) or requests.get(GPU, 0)
    ratio, memory = requests.get(GPU_RATIO, 0) or requests.get(GPU, 0), requests.get(GPU_MEMORY, 0)
    percent = ratio or core
    count = requests.get(GPU_SHARED, 0) or (percent // 100 if percent > 100 and percent % 100 == 0 else 1)
    core, memory, ratio = (-(-amount // count) for amount in (core, 0 if ratio else memory, ratio))
    return CardNeed(named[0], count, core, memory, ratio)


def _by_container(spec: Mapping[str, Any]) -> Iterator[Amounts]:
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            resources = container.get("resources") or {}
            try:
                yield parse_amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})
            except QuantityError:
                continue


def _is_prod(name: str | None, priority: int) -> bool:
    if name:
        return name == "koord-prod"
    return _PROD[0] <= priority <= _PROD[1] or not _BANDS[0] <= priority <= _BANDS[1]


def _numa_spec(text: str | None) -> tuple[str, str]:
    """The policy and the exclusiveness that a pod's annotation names."""
    if text is None:
        return "", ""
    try:
        read = read_json(text)
        return str(read.get("numaTopologyPolicy") or ""), str(read.get("singleNUMANodeExclusive") or "")
    except (ValueError, AttributeError):
        return "", ""
