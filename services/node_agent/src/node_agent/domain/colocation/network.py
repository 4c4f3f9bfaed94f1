"""Classes of pods on their way out of the node: what of the uplink each is guaranteed, the most it may take, who goes first.

The machine itself, its own pods, and pods of classes without a rule share one class, which goes before all others and may take
everything: nobody is held because nobody said anything of him.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from node_agent.domain.colocation.groups import NET_CLASS, Group, Knobs
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.network_rules import NetworkRule, Sorting
from node_agent.domain.colocation.node_slo import NodeSlo, Qos
from node_agent.domain.colocation.pods import NodePod

HANDLE = 0x71DE
"""Of our queueing discipline: what has another is somebody else's."""
WHOLE, OTHERS = 1, 2
MINORS = {Qos.LSR: 3, Qos.LS: 4, Qos.BE: 5}
"""The class of each QoS; the less, the earlier it goes. LSE is with LSR."""
LEAST_BITS = 100_000
"""No class is held to less, so that what is in it still can be reached and ended."""


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """One class: ``rate`` is guaranteed, ``ceiling`` the most, in bits per second. A lower ``priority`` goes first."""

    minor: int
    rate: int
    ceiling: int
    priority: int


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """How the uplink is shared out: ``classes`` below one that has ``total``, and whose packets belong to which of them."""

    device: str
    total: int
    classes: tuple[TrafficClass, ...]
    addresses: Mapping[int, tuple[str, ...]]
    groups: Mapping[int, tuple[Group, ...]]
    """Those of pods in the machine's own network; nothing but the class ids where these tell them."""


def network_plan(slo: NodeSlo, machine: Machine, pods: Iterable[NodePod]) -> NetworkPlan | None:
    """The classes that the rules ask for; None where they ask for none, or something is ``lacking``."""
    rules = _rules(slo)
    if not rules or lacking(slo, machine) or machine.uplink is None:
        return None
    total = _total(slo, machine)
    own = [pod for pod in pods if _minor(pod, rules) is not None]
    by_path = [pod for pod in own if not pod.addresses and machine.uplink.sorting is Sorting.PATH]
    return NetworkPlan(
        machine.uplink.device,
        total,
        _classes(rules, total),
        {
            minor: tuple(sorted(address for pod in own if _minor(pod, rules) == minor for address in pod.addresses))
            for minor in rules
        },
        {minor: tuple(sorted(pod.group for pod in by_path if _minor(pod, rules) == minor)) for minor in rules},
    )


def lacking(slo: NodeSlo, machine: Machine) -> str:
    """What the node lacks to give classes what the rules ask for; nothing where nothing is asked, or all is there."""
    if not _rules(slo):
        return ""
    if machine.uplink is None:
        return "the uplink was not looked for"
    if machine.uplink.missing:
        return machine.uplink.missing
    return (
        "" if _total(slo, machine) else "systemStrategy.totalNetworkBandwidth: the device does not say what it carries"
    )


def not_kept(slo: NodeSlo, machine: Machine) -> str:
    """Why something that the rules ask of the network does not hold; nothing where all does."""
    missing = lacking(slo, machine)
    if not missing and any(rule.inward for rule in _rules(slo).values()):
        return "what comes in is not held: only what leaves is in the hands of the node"
    return missing


def class_ids(slo: NodeSlo, machine: Machine, pods: Iterable[NodePod]) -> Knobs:
    """The class ids of containers in the machine's own network, where cgroup version 1 carries them."""
    if machine.uplink is None or machine.uplink.sorting is not Sorting.CLASS_ID or lacking(slo, machine):
        return {}
    rules = _rules(slo)
    return {
        pod.group.of(one.name): {NET_CLASS: str(class_id(minor))}
        for pod in pods
        if not pod.addresses and (minor := _minor(pod, rules)) is not None
        for one in pod.containers
    }


def class_id(minor: int) -> int:
    """As the kernel counts: handle and class in one number."""
    return HANDLE << 16 | minor


def _rules(slo: NodeSlo) -> dict[int, NetworkRule]:
    return {minor: rule for qos, minor in MINORS.items() if (rule := slo.of(qos).network) is not None}


def _minor(pod: NodePod, rules: Mapping[int, NetworkRule]) -> int | None:
    minor = MINORS.get(Qos.LSR if pod.qos is Qos.LSE else pod.qos)
    return minor if minor in rules else None


def _total(slo: NodeSlo, machine: Machine) -> int:
    return slo.bandwidth or (machine.uplink.bits if machine.uplink is not None else 0)


def _classes(rules: Mapping[int, NetworkRule], total: int) -> tuple[TrafficClass, ...]:
    """What is guaranteed is never more than there is: guarantees of more are cut in proportion."""
    asked = {minor: rule.request.of(total) for minor, rule in rules.items()}
    whole = max(total, sum(asked.values()))
    rates = {minor: rate * total // whole for minor, rate in asked.items()}
    found = [_class(OTHERS, total - sum(rates.values()), total, 0)]
    for minor, rule in sorted(rules.items()):
        limit = rule.limit.of(total) or total
        found.append(_class(minor, min(rates[minor], limit), limit, minor - OTHERS))
    return tuple(found)


def _class(minor: int, rate: int, ceiling: int, priority: int) -> TrafficClass:
    return TrafficClass(minor, max(LEAST_BITS, rate), max(LEAST_BITS, rate, ceiling), priority)
