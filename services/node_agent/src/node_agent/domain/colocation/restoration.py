"""What is written to the node: what was decided, and, in files that nobody decides about any more, what stood there at first."""

from collections.abc import Mapping

from kube.cpu_lists import format_cpus
from node_agent.domain.colocation.groups import (
    CPU_BURST,
    CPU_IDLE,
    CPU_MAX,
    CPU_SET,
    CPU_SHARES,
    CPU_WEIGHT,
    IO_MAX,
    IO_WEIGHT,
    MEMORY_HIGH,
    MEMORY_LOW,
    MEMORY_MIN,
    NET_CLASS,
    UNLIMITED,
    Group,
    Knobs,
    Tier,
)
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.priorities import DEFAULT_WEIGHT
from node_agent.domain.colocation.quotas import as_asked, cpu_max
from node_agent.domain.limits import Limits

_DEFAULTS = {
    CPU_BURST: "0",
    CPU_IDLE: "0",
    CPU_MAX: cpu_max(None),
    IO_WEIGHT: f"default {DEFAULT_WEIGHT}",
    MEMORY_HIGH: UNLIMITED,
    MEMORY_LOW: "0",
    MEMORY_MIN: "0",
    NET_CLASS: "0",
}


def to_write(
    decided: Knobs, written: Knobs, pods: Mapping[str, NodePod], machine: Machine
) -> dict[Group, Mapping[str, str]]:
    """All files that have to be right now: those that are ``decided``, and those ``written`` before that are so no more.

    Groups of pods that are gone are left out: they went with them.
    """
    whole = dict(decided)
    for group, files in written.items():
        there = whole.get(group, {})
        if files is there or files.keys() <= there.keys() or (group.pod and group.pod not in pods):
            continue
        missing = [name for name in files if name not in there]
        whole[group] = {**there, **{name: at_first(group, name, files[name], pods, machine) for name in missing}}
    return {
        group: _with_weight(group, files, pods) if CPU_IDLE in files else files
        for group, files in whole.items()
        if files
    }


def _with_weight(group: Group, files: Mapping[str, str], pods: Mapping[str, NodePod]) -> Mapping[str, str]:
    """A group that is idle has no weight, and one that is not any more has lost it: it is written after that."""
    idle = files[CPU_IDLE]
    others = {name: text for name, text in files.items() if name not in (CPU_IDLE, CPU_WEIGHT, CPU_SHARES)}
    own = own_files(group, pods) if idle == "0" else {}
    weights = {name: own[name] for name in (CPU_WEIGHT, CPU_SHARES) if name in own}
    return {CPU_IDLE: idle, **weights, **others}


def at_first(group: Group, name: str, text: str, pods: Mapping[str, NodePod], machine: Machine) -> str:
    """What a file holds that nobody decides about; ``text`` is what was written to it last."""
    own = own_files(group, pods)
    if name in own:
        return own[name]
    if name == CPU_SET:
        return format_cpus(machine.cpus)
    if name == IO_MAX:
        none = " ".join(f"{limit}={UNLIMITED}" for limit in ("rbps", "wbps", "riops", "wiops"))
        return "\n".join(f"{line.split()[0]} {none}" for line in text.splitlines())
    return _DEFAULTS.get(name, text)


def has_file(group: Group, name: str, pods: Mapping[str, NodePod]) -> bool:
    """Whether a group has a file that somebody could decide about."""
    return (not group.pod or group.pod in pods) and (
        name in own_files(group, pods) or name in _DEFAULTS or name == CPU_SET
    )


def own_files(group: Group, pods: Mapping[str, NodePod]) -> Mapping[str, str]:
    """What a pod's or container's own limits say; of a tier the weight, as a kubelet sets it: least for best effort, else the sum."""
    pod = pods.get(group.pod)
    if pod is None:
        return {} if group.pod or group.tier is Tier.GUARANTEED else as_asked(_of_tier(group.tier, pods))
    if not group.container:
        return as_asked(pod.limits)
    return next((as_asked(one.limits) for one in pod.containers if one.name == group.container), {})


def _of_tier(tier: Tier, pods: Mapping[str, NodePod]) -> Limits:
    asked = sum(pod.requests.get("cpu", 0) for pod in pods.values() if pod.tier is tier)
    return Limits(cpu_request_milli=0 if tier is Tier.BEST_EFFORT else asked)
