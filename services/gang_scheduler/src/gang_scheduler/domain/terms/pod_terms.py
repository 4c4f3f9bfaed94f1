"""What a pod asks of the pods around it: affinity, anti-affinity and topology spread, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gang_scheduler.domain.terms.selectors import Conjunction, Requirement, describe, label_selector, matches_all

Labels = Mapping[str, str]


class PodTerm(NamedTuple):
    """A set of pods: those in one of ``namespaces``, or in a namespace that ``namespace_selector`` takes, with fitting labels.

    They belong to each of the sets ``also``, too.
    """

    selector: Conjunction
    namespaces: tuple[str, ...]
    namespace_selector: Conjunction | None = None
    also: "tuple[PodTerm, ...]" = ()

    def matches(self, namespace: str, labels: Labels, namespace_labels: Mapping[str, Labels]) -> bool:
        """Whether a pod in ``namespace`` with ``labels`` belongs to the set."""
        if namespace not in self.namespaces and (
            self.namespace_selector is None
            or not matches_all(self.namespace_selector, namespace_labels.get(namespace, {}))
        ):
            return False
        return matches_all(self.selector, labels) and all(
            term.matches(namespace, labels, namespace_labels) for term in self.also
        )

    def __str__(self) -> str:
        own = describe(self.selector) or "any pod"
        return " and ".join([own, *(str(term) for term in self.also)])


class Neighbourhood(NamedTuple):
    """Pods of ``term`` in the same domain of the node label ``topology_key``; ``weight`` is 0 for what is required."""

    term: PodTerm
    topology_key: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Spread:
    """One topology spread constraint."""

    term: PodTerm
    topology_key: str
    max_skew: int
    hard: bool
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All that one pod asks of others."""

    near: tuple[Neighbourhood, ...] = ()
    apart: tuple[Neighbourhood, ...] = ()
    preferred: tuple[Neighbourhood, ...] = ()
    spread: tuple[Spread, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.near or self.apart or self.preferred or self.spread)

    def terms(self) -> list[PodTerm]:
        """Every set of pods that has to be counted for this pod."""
        around = [item.term for item in (*self.near, *self.apart, *self.preferred)]
        return around + [item.term for item in self.spread]


NO_TERMS = PodTerms()


def pod_terms(spec: Mapping[str, Any], namespace: str, labels: Labels) -> PodTerms:
    """The terms of a pod with ``spec`` and ``labels`` in ``namespace``."""
    affinity = spec.get("affinity") or {}
    near, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    constraints = spec.get("topologySpreadConstraints") or ()
    if not (near or apart or constraints):
        return NO_TERMS
    return PodTerms(
        _of_one_pod(tuple(_neighbourhood(item, 0, namespace, labels) for item in near.get(_REQUIRED) or ())),
        tuple(_neighbourhood(item, 0, namespace, labels) for item in apart.get(_REQUIRED) or ()),
        tuple(_preferred(near, 1, namespace, labels) + _preferred(apart, -1, namespace, labels)),
        tuple(_spread(item, namespace, labels) for item in constraints),
    )


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _of_one_pod(near: tuple[Neighbourhood, ...]) -> tuple[Neighbourhood, ...]:
    """Required affinity to several sets wants one pod that belongs to all of them, as kube-scheduler counts it."""
    terms = sorted({item.term for item in near}, key=repr)
    if len(terms) <= 1:
        return near
    return tuple(item._replace(term=terms[0]._replace(also=tuple(terms[1:]))) for item in near)


def _preferred(affinity: Mapping[str, Any], sign: int, namespace: str, labels: Labels) -> list[Neighbourhood]:
    return [
        _neighbourhood(item.get("podAffinityTerm") or {}, sign * int(item.get("weight") or 0), namespace, labels)
        for item in affinity.get(_PREFERRED) or ()
    ]


def _neighbourhood(item: Mapping[str, Any], weight: int, namespace: str, labels: Labels) -> Neighbourhood:
    namespaces = tuple(sorted(item.get("namespaces") or ()))
    by_label = item.get("namespaceSelector")
    if not namespaces and by_label is None:
        namespaces = (namespace,)
    own = _own_values(item.get("matchLabelKeys"), "In", labels) + _own_values(
        item.get("mismatchLabelKeys"), "NotIn", labels
    )
    term = PodTerm(_selector(item) + own, namespaces, label_selector(by_label))
    return Neighbourhood(term, str(item.get("topologyKey") or ""), weight)


def _spread(item: Mapping[str, Any], namespace: str, labels: Labels) -> Spread:
    own = _own_values(item.get("matchLabelKeys"), "In", labels)
    return Spread(
        PodTerm(_selector(item) + own, (namespace,)),
        str(item.get("topologyKey") or ""),
        max(1, int(item.get("maxSkew") or 1)),
        item.get("whenUnsatisfiable") != "ScheduleAnyway",
        int(item.get("minDomains") or 1),
        item.get("nodeAffinityPolicy") != "Ignore",
        item.get("nodeTaintsPolicy") == "Honor",
    )


def _selector(item: Mapping[str, Any]) -> Conjunction:
    selector = label_selector(item.get("labelSelector"))
    # No selector at all selects no pod: a condition that no label can meet.
    return (Requirement("", "In"),) if selector is None else selector


def _own_values(keys: Any, operator: str, labels: Labels) -> Conjunction:
    return tuple(Requirement(key, operator, (labels[key],)) for key in sorted(keys or ()) if key in labels)
