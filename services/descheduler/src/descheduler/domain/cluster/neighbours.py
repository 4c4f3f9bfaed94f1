"""What pods ask of those around them: anti-affinity of both sides, affinity, topology spread that has to hold."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from kube import Key, Manifest, Object, Store
from kube.node_choice import may_run
from kube.selectors import SelectorError, matches

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True)
class Neighbours:
    """Where the pods of a plan are: ``places`` says so for those that hold a place, as moves change it."""

    store: Store
    places: dict[Key, str]
    _found: dict[str, list[Object]] = field(default_factory=dict)
    _keepers: list[tuple[Object, Manifest]] | None = None

    def obstacle(self, pod: Object, node: Object) -> str:
        """Why neighbours keep ``pod`` off ``node``, in words; empty where none does.

        At either moment: while the pod is where it was and a place is reserved for its successor, and when it has gone.
        """
        return self._obstacle(pod, node, ()) or self._obstacle(pod, node, (pod.key,))

    def _obstacle(self, pod: Object, node: Object, gone: Collection[Key]) -> str:
        for term in _terms(pod, "podAntiAffinity"):
            if any(self._shares(other, term, node) for other in self._selected(term, pod, gone)):
                return f"a pod that it keeps away from is in its {term.get('topologyKey')}"
        for owner, term in self._all_keepers():
            if owner.key not in gone and _is_meant(term, owner, pod, self.store) and self._shares(owner, term, node):
                return f"pod {owner.name} in its {term.get('topologyKey')} keeps it away"
        for term in _terms(pod, "podAffinity"):
            others = self._selected(term, pod, gone)
            alone = not others and _is_meant(term, pod, pod, self.store) and term.get("topologyKey") in node.labels
            if not alone and not any(self._shares(other, term, node) for other in others):
                return f"no pod that it wants near is in its {term.get('topologyKey')}"
        return self._skewed(pod, node, gone)

    def kept_away(self, pod: Object, node: Object) -> str:
        """Whose anti-affinity the pod breaks where it is, or which of its own; empty where none."""
        for term in _terms(pod, "podAntiAffinity"):
            for other in self._selected(term, pod, (pod.key,)):
                if self._shares(other, term, node):
                    return f"it keeps away from {other.name}, which is in the same {term.get('topologyKey')}"
        return ""

    def counts(
        self, pod: Object, constraint: Manifest, nodes: Iterable[Object], gone: Collection[Key] = ()
    ) -> Counter[str]:
        """How many pods of a spread constraint are in each domain of those ``nodes`` that take part; ``gone`` do not count."""
        key = str(constraint.get("topologyKey") or "")
        domains = {
            node.name: node.labels[key] for node in nodes if key in node.labels and _takes_part(pod, node, constraint)
        }
        found = Counter(dict.fromkeys(domains.values(), 0))
        for other in self._selected(_spread_term(pod, constraint), pod, gone):
            domain = domains.get(self.places.get(other.key, ""))
            if domain is not None:
                found[domain] += 1
        return found

    def _skewed(self, pod: Object, node: Object, gone: Collection[Key]) -> str:
        for constraint in spreads(pod):
            key = str(constraint.get("topologyKey") or "")
            found = self.counts(pod, constraint, self.store.of_kind("Node").values(), gone)
            if node.labels.get(key) not in found or not _takes_part(pod, node, constraint):
                return f"it has no {key}, over which the pod is to be spread"
            own = _is_meant(_spread_term(pod, constraint), pod, pod, self.store)
            least = min(found.values(), default=0) if len(found) >= int(constraint.get("minDomains") or 1) else 0
            if found[node.labels[key]] + own - least > int(constraint.get("maxSkew") or 1):
                return f"the skew over {key} would be larger than {constraint.get('maxSkew') or 1}"
        return ""

    def _selected(self, term: Manifest, owner: Object, gone: Collection[Key] = ()) -> list[Object]:
        """The placed pods that a term of ``owner`` selects, those that are ``gone`` left out."""
        text = json.dumps([term, owner.namespace], sort_keys=True, default=str) + _own_values(term, owner)
        if text not in self._found:
            self._found[text] = [
                pod
                for pod in (self.store.get(key) for key in sorted(self.places))
                if pod is not None and _is_meant(term, owner, pod, self.store)
            ]
        return [pod for pod in self._found[text] if pod.key not in gone]

    def _all_keepers(self) -> list[tuple[Object, Manifest]]:
        if self._keepers is None:
            placed = (self.store.get(key) for key in sorted(self.places))
            self._keepers = [
                (pod, term) for pod in placed if pod is not None for term in _terms(pod, "podAntiAffinity")
            ]
        return self._keepers

    def _shares(self, other: Object, term: Manifest, node: Object) -> bool:
        """Whether ``other`` is in the domain of ``node``."""
        key = str(term.get("topologyKey") or "")
        there = self.store.get(Key("Node", "", self.places.get(other.key, "")))
        return there is not None and key in node.labels and there.labels.get(key) == node.labels[key]


def spreads(pod: Object, kinds: Collection[str] = ("DoNotSchedule",)) -> list[Manifest]:
    """The spread constraints of a pod: those that have to hold, or what ``kinds`` says."""
    listed = pod.spec.get("topologySpreadConstraints") or ()
    return [one for one in listed if (one.get("whenUnsatisfiable") or "DoNotSchedule") in kinds]


def keeps_apart(pod: Object) -> bool:
    """Whether a pod demands that others be elsewhere."""
    return any(True for _ in _terms(pod, "podAntiAffinity"))


def _terms(pod: Object, side: str) -> Iterator[Manifest]:
    affinity = pod.spec.get("affinity")
    if affinity:
        yield from (affinity.get(side) or {}).get(_REQUIRED) or ()


def _spread_term(pod: Object, constraint: Manifest) -> Manifest:
    return {name: constraint.get(name) for name in ("labelSelector", "matchLabelKeys")} | {
        "namespaces": [pod.namespace]
    }


def _takes_part(pod: Object, node: Object, constraint: Manifest) -> bool:
    spec = pod.spec
    if constraint.get("nodeAffinityPolicy") == "Ignore":
        spec = {name: spec[name] for name in ("tolerations",) if name in spec}
    if constraint.get("nodeTaintsPolicy") != "Honor":
        spec = {**spec, "tolerations": [{"operator": "Exists"}]}
    return may_run(spec, node)


def _own_values(term: Manifest, owner: Object) -> str:
    keys = [*(term.get("matchLabelKeys") or ()), *(term.get("mismatchLabelKeys") or ())]
    return "".join(f"|{key}={owner.labels.get(key)}" for key in keys)


def _is_meant(term: Manifest, owner: Object, pod: Object, store: Store) -> bool:
    """Whether a term of ``owner`` selects ``pod``."""
    namespaces, by_label = term.get("namespaces") or (), term.get("namespaceSelector")
    try:
        if pod.namespace not in (namespaces or ([owner.namespace] if by_label is None else ())):
            namespace = store.get(Key("Namespace", "", pod.namespace))
            if by_label is None or not matches(by_label, namespace.labels if namespace is not None else {}):
                return False
        same = [key for key in term.get("matchLabelKeys") or () if key in owner.labels]
        other = [key for key in term.get("mismatchLabelKeys") or () if key in owner.labels]
        return (
            all(pod.labels.get(key) == owner.labels[key] for key in same)
            and not any(pod.labels.get(key) == owner.labels[key] for key in other)
            and matches(term.get("labelSelector"), pod.labels)
        )
    except SelectorError:
        return False
