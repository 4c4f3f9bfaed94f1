"""What a predecessor has left that nobody remembers: its file is lost, or had no room.

The groups themselves show it. What differs from what stands there at first is taken as written by a predecessor, and so goes
back, unless somebody decides about it. Of the groups of a kubelet this is only what holds a pod back further than its own limits
do: what gives more is left alone, for the kubelet may have its reasons.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from kube.cpu_lists import parse_cpus
from node_agent.domain.colocation.groups import (
    CPU_BURST,
    CPU_IDLE,
    CPU_MAX,
    CPU_SET,
    MEMORY_HIGH,
    MEMORY_LOW,
    MEMORY_MIN,
    UNLIMITED,
    Group,
    Knobs,
    Tier,
)
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.restoration import at_first

HOLD_BACK = (CPU_MAX, CPU_SET, CPU_IDLE, MEMORY_HIGH)
OTHERS = (CPU_BURST, MEMORY_LOW, MEMORY_MIN)
Stands = Callable[[Group, str], str | None]
"""What a file says; None where that cannot be read."""


def left_behind(stands: Stands, pods: Mapping[str, NodePod], machine: Machine, own: bool) -> Knobs:
    """The files that say something else than at first, with what they say; ``own`` groups are no kubelet's.

    The CPU set of a kubelet's container is looked at only where that of its pod is a smaller one: the rest is the kubelet's.
    """
    found: dict[Group, dict[str, str]] = {}
    for group in _groups(pods):
        pinned = own or not group.container or CPU_SET in found.get(group._replace(container=""), {})
        for name in (*HOLD_BACK, *OTHERS) if own else HOLD_BACK:
            text = stands(group, name) if name != CPU_SET or pinned else None
            first = at_first(group, name, text or "", pods, machine)
            if text and (text != first if own else _less(name, text, first)):
                found.setdefault(group, {})[name] = text
    return found


def _groups(pods: Mapping[str, NodePod]) -> Iterator[Group]:
    yield Group(Tier.BEST_EFFORT)
    for pod in pods.values():
        yield pod.group
        for one in pod.containers:
            yield pod.group.of(one.name)


def _less(name: str, text: str, first: str) -> bool:
    """Whether ``text`` gives less than what stands there ``first``."""
    try:
        if name == CPU_SET:
            return bool(parse_cpus(text)) and set(parse_cpus(text)) < set(parse_cpus(first))
        if name == CPU_IDLE:
            return int(text) > int(first)
        now, then = _part(text), _part(first)
        return now is not None and (then is None or now < then)
    except (ArithmeticError, ValueError):
        return False


def _part(text: str) -> Fraction | None:
    """The part of a CPU that a quota allows, or a number of bytes; None is without a limit."""
    amount, _, period = text.partition(" ")
    return None if amount == UNLIMITED else Fraction(int(amount), int(period or 1))
