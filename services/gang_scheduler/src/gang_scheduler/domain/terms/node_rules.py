"""What a pod asks of its node, whatever runs there: selector, node affinity, tolerations; parsed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gang_scheduler.domain.terms.selectors import Conjunction, describe, equalities, requirements


class Taint(NamedTuple):
    """A node's taint."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(NamedTuple):
    """What a pod tolerates; an empty key with Exists is everything, an empty effect every effect."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: Taint) -> bool:
        """Whether a pod with this toleration may ignore ``taint``."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


class NodeTerm(NamedTuple):
    """One node selector term: conditions on labels and on the node's name, all of which must hold."""

    labels: Conjunction
    fields: Conjunction

    def __str__(self) -> str:
        return describe(self.labels + self.fields)


NODE_GROUP = "volcano.sh/nodegroup-name"
"""Label: the group that a node is in."""


class Demands(NamedTuple):
    """What is demanded of a pod's node besides what its spec says."""

    conditions: Conjunction = ()
    preferred: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def beside(self, other: "Demands | None") -> "Demands":
        """These and the others."""
        if other is None:
            return self
        conditions, preferred = self.conditions + other.conditions, self.preferred + other.preferred
        return Demands(conditions, preferred, self.tolerations + other.tolerations)


@dataclass(frozen=True, slots=True)
class NodeRules:
    """The static demands of a pod on its node. ``required`` is a disjunction; None means that there is none."""

    selector: Conjunction = ()
    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)
    """Worked out once: masks are kept by rules."""

    def __post_init__(self) -> None:
        content = hash((self.selector, self.required, self.preferred, self.tolerations))
        object.__setattr__(self, "_hash", content)

    def __hash__(self) -> int:
        return self._hash

    def untolerated(self, taints: tuple[Taint, ...]) -> list[Taint]:
        """The taints that the pod does not tolerate."""
        return [taint for taint in taints if not any(item.covers(taint) for item in self.tolerations)]


def node_rules(spec: Mapping[str, Any], demands: Demands | None = None) -> NodeRules:
    """The node rules of a pod spec, and of what is demanded besides."""
    more = demands or Demands()
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return NodeRules(
        (*equalities(spec.get("nodeSelector")), *more.conditions),
        None if required is None else tuple(node_term(item) for item in required.get("nodeSelectorTerms") or ()),
        (
            *((int(item.get("weight") or 0), node_term(item.get("preference") or {})) for item in preferred),
            *more.preferred,
        ),
        (*(toleration(item) for item in spec.get("tolerations") or ()), *more.tolerations),
    )


def node_term(item: Mapping[str, Any]) -> NodeTerm:
    """A node selector term of a manifest."""
    return NodeTerm(requirements(item.get("matchExpressions")), requirements(item.get("matchFields")))


def toleration(item: Mapping[str, Any]) -> Toleration:
    """A toleration of a manifest: of a pod, or of a request for devices."""
    return Toleration(
        str(item.get("key") or ""),
        str(item.get("operator") or "Equal"),
        str(item.get("value") or ""),
        str(item.get("effect") or ""),
    )


def taints_of(spec: Mapping[str, Any]) -> list[Taint]:
    """The taints that a node's spec names."""
    return [
        Taint(str(item.get("key") or ""), str(item.get("value") or ""), str(item.get("effect") or ""))
        for item in spec.get("taints") or ()
    ]
