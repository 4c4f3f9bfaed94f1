"""How a pod that gets CPUs of its own wants them: whole cores or one thread of each, and which neighbours it shuns.

The names are Koordinator's: annotation ``scheduling.koordinator.sh/resource-spec`` of a pod, label
``node.koordinator.sh/cpu-bind-policy`` of a node.
"""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from kube.json_text import read_json

RESOURCE_SPEC = "scheduling.koordinator.sh/resource-spec"


class BindPolicy(StrEnum):
    """Which threads of the cores come first."""

    FULL = "FullPCPUs"
    """Whole cores."""

    SPREAD = "SpreadByPCPUs"
    """One thread of each core, then the second ones."""


class Exclusive(IntEnum):
    """What a pod would rather not share with other pods that say the same: nothing, a core, a NUMA node."""

    NONE = 0
    CORE = 1
    CELL = 2


class Binding(NamedTuple):
    """``required``: the pod waits rather than get other threads than its policy says."""

    policy: BindPolicy = BindPolicy.FULL
    required: bool = False
    exclusive: Exclusive = Exclusive.NONE
    pins: bool = True
    """Whether the pod gets CPUs of its own at all: not where it only asks for a bound on its bursts."""

    @property
    def words(self) -> str:
        """The policy for people."""
        return f"the pod's {self.policy} asks"


USUAL = Binding()

_POLICIES = {
    "FullPCPUs": BindPolicy.FULL,
    "FullPCPUsOnly": BindPolicy.FULL,
    "SpreadByPCPUs": BindPolicy.SPREAD,
}
_EXCLUSIVE = {"PCPULevel": Exclusive.CORE, "NUMANodeLevel": Exclusive.CELL}
_BURST = "ConstrainedBurst"


def binding_of(text: str | None) -> Binding:
    """The binding that a pod's annotation asks for; what cannot be read, and ``Default``, is the usual one."""
    if text is None:
        return USUAL
    try:
        spec = read_json(text)
        required, preferred = (str(spec.get(f"{word}CPUBindPolicy") or "") for word in ("required", "preferred"))
        exclusive = _EXCLUSIVE.get(str(spec.get("preferredCPUExclusivePolicy") or ""), Exclusive.NONE)
    except (ValueError, AttributeError):
        return USUAL
    policy = _POLICIES.get(required) or _POLICIES.get(preferred) or BindPolicy.FULL
    return Binding(policy, required in _POLICIES, exclusive, _BURST not in (required or preferred,))


def node_binding(text: str) -> BindPolicy | None:
    """What a node's label, or its kubelet's option, demands of all that is pinned there; None for nothing."""
    return _POLICIES.get(text)
