"""Where a pod may run, as its user says: node selector, affinity, tolerations, spread."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.selectors import SELECTOR, check_expression, check_selector
from admission.domain.shapes import TEXT, TEXTS, WHOLE, ListOf, fields, one_of, within

_EXPRESSIONS = ListOf(fields(key=TEXT, operator=TEXT, values=TEXTS))
NODE_TERM = fields(matchExpressions=_EXPRESSIONS, matchFields=_EXPRESSIONS)
_POD_TERM = fields(
    labelSelector=SELECTOR, topologyKey=TEXT, namespaces=TEXTS, namespaceSelector=SELECTOR, matchLabelKeys=TEXTS,
    mismatchLabelKeys=TEXTS,
)  # fmt: skip
_POD_TERMS = fields(
    requiredDuringSchedulingIgnoredDuringExecution=ListOf(_POD_TERM),
    preferredDuringSchedulingIgnoredDuringExecution=ListOf(fields(weight=WHOLE, podAffinityTerm=_POD_TERM)),
)
AFFINITY = fields(
    nodeAffinity=fields(
        requiredDuringSchedulingIgnoredDuringExecution=fields(nodeSelectorTerms=ListOf(NODE_TERM)),
        preferredDuringSchedulingIgnoredDuringExecution=ListOf(fields(weight=WHOLE, preference=NODE_TERM)),
    ),
    podAffinity=_POD_TERMS,
    podAntiAffinity=_POD_TERMS,
)
TOLERATION = fields(key=TEXT, operator=TEXT, value=TEXT, effect=TEXT, tolerationSeconds=WHOLE)
SPREAD = fields(
    maxSkew=WHOLE, topologyKey=TEXT, whenUnsatisfiable=TEXT, labelSelector=SELECTOR, minDomains=WHOLE,
    nodeAffinityPolicy=TEXT, nodeTaintsPolicy=TEXT, matchLabelKeys=TEXTS,
)  # fmt: skip

REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
NODE_NAME = "metadata.name"
"""The only field of a node that can be selected by."""
INCLUSIONS = ("Honor", "Ignore")
MUST = "DoNotSchedule"


def check_placement(path: str, spec: Mapping[str, Any]) -> Iterable[FieldError]:
    """Every rule of a pod spec about where it may run."""
    yield from names.labels(f"{path}.nodeSelector", spec.get("nodeSelector") or {})
    for index, wanted in enumerate(spec.get("tolerations") or []):
        yield from check_toleration(f"{path}.tolerations[{index}]", wanted)
    affinity = spec.get("affinity") or {}
    yield from _check_node_affinity(f"{path}.affinity.nodeAffinity", affinity.get("nodeAffinity") or {})
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _check_pod_affinity(f"{path}.affinity.{name}", affinity.get(name) or {})
    seen: set[tuple[str, str]] = set()
    for index, spread in enumerate(spec.get("topologySpreadConstraints") or []):
        where = f"{path}.topologySpreadConstraints[{index}]"
        yield from _check_spread(where, spread)
        domain = spread.get("topologyKey") or "", spread.get("whenUnsatisfiable") or ""
        if domain in seen:
            rule = f"is a duplicate: another constraint spreads over {domain[0]} with {domain[1]}; merge the two"
            yield FieldError(f"{where}.topologyKey", domain[0], rule)
        seen.add(domain)


def check_toleration(path: str, wanted: Mapping[str, Any]) -> Iterable[FieldError]:
    """One toleration: ``Exists`` has no value, and a missing key needs ``Exists``."""
    operator = wanted.get("operator") or "Equal"
    yield from one_of(f"{path}.operator", operator, ("Equal", "Exists"))
    yield from one_of(f"{path}.effect", wanted.get("effect") or None, EFFECTS)
    if operator == "Exists" and wanted.get("value"):
        yield FieldError(f"{path}.value", wanted["value"], "must be empty with operator Exists")
    if not wanted.get("key") and operator != "Exists":
        yield FieldError(f"{path}.key", None, "is required with operator Equal; use Exists to tolerate every taint")
    if wanted.get("tolerationSeconds") is not None and wanted.get("effect") != "NoExecute":
        rule = "must be NoExecute beside tolerationSeconds: no other taint takes pods away; leave the seconds out"
        yield FieldError(f"{path}.effect", wanted.get("effect"), rule)


def _check_node_affinity(path: str, affinity: Mapping[str, Any]) -> Iterable[FieldError]:
    required = affinity.get(REQUIRED)
    if required is not None and not required.get("nodeSelectorTerms"):
        yield FieldError(f"{path}.{REQUIRED}.nodeSelectorTerms", None, "must name at least one term")
    for index, term in enumerate((required or {}).get("nodeSelectorTerms") or []):
        yield from _check_node_term(f"{path}.{REQUIRED}.nodeSelectorTerms[{index}]", term)
    for index, wish in enumerate(affinity.get(PREFERRED) or []):
        where = f"{path}.{PREFERRED}[{index}]"
        yield from within(f"{where}.weight", wish.get("weight", 0), 1, 100)
        yield from _check_node_term(f"{where}.preference", wish.get("preference") or {})


def _check_node_term(path: str, term: Mapping[str, Any]) -> Iterable[FieldError]:
    for index, wanted in enumerate(term.get("matchExpressions") or []):
        yield from check_expression(f"{path}.matchExpressions[{index}]", wanted, NODE_OPERATORS)
    for index, wanted in enumerate(term.get("matchFields") or []):
        where = f"{path}.matchFields[{index}]"
        yield from one_of(f"{where}.key", wanted.get("key") or "", (NODE_NAME,))
        yield from one_of(f"{where}.operator", wanted.get("operator") or "", ("In", "NotIn"))
        if len(wanted.get("values") or ()) != 1:
            rule = "must be the name of one node; write a term for each, or use matchExpressions"
            yield FieldError(f"{where}.values", wanted.get("values"), rule)


def _check_pod_affinity(path: str, affinity: Mapping[str, Any]) -> Iterable[FieldError]:
    for index, term in enumerate(affinity.get(REQUIRED) or []):
        yield from _check_pod_term(f"{path}.{REQUIRED}[{index}]", term)
    for index, wish in enumerate(affinity.get(PREFERRED) or []):
        where = f"{path}.{PREFERRED}[{index}]"
        yield from within(f"{where}.weight", wish.get("weight", 0), 1, 100)
        yield from _check_pod_term(f"{where}.podAffinityTerm", wish.get("podAffinityTerm") or {})


def _check_pod_term(path: str, term: Mapping[str, Any]) -> Iterable[FieldError]:
    yield from _check_domain(path, term)
    yield from check_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for index, name in enumerate(term.get("namespaces") or []):
        yield from names.dns_label(f"{path}.namespaces[{index}]", name)
    matched = term.get("matchLabelKeys") or []
    yield from _check_own_keys(path, "mismatchLabelKeys", term)
    for index, key in enumerate(term.get("mismatchLabelKeys") or []):
        if key in matched:
            rule = "is among matchLabelKeys too, which no pod can meet; keep it in one of them"
            yield FieldError(f"{path}.mismatchLabelKeys[{index}]", key, rule)


def _check_spread(path: str, spread: Mapping[str, Any]) -> Iterable[FieldError]:
    yield from within(f"{path}.maxSkew", spread.get("maxSkew", 0), 1)
    yield from _check_domain(path, spread)
    wanted = spread.get("whenUnsatisfiable") or ""
    yield from one_of(f"{path}.whenUnsatisfiable", wanted, (MUST, "ScheduleAnyway"))
    yield from within(f"{path}.minDomains", spread.get("minDomains"), 1)
    if spread.get("minDomains") is not None and wanted != MUST:
        yield FieldError(f"{path}.minDomains", spread["minDomains"], f"goes with whenUnsatisfiable {MUST} only")
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        yield from one_of(f"{path}.{policy}", spread.get(policy), INCLUSIONS)


def _check_domain(path: str, term: Mapping[str, Any]) -> Iterable[FieldError]:
    """What affinity and spread have in common: the label that makes domains, the pods that are meant."""
    if not term.get("topologyKey"):
        yield FieldError(f"{path}.topologyKey", None, "is required; name the node label that makes a domain")
    else:
        yield from names.qualified_name(f"{path}.topologyKey", term["topologyKey"])
    yield from check_selector(f"{path}.labelSelector", term.get("labelSelector"))
    yield from _check_own_keys(path, "matchLabelKeys", term)


def _check_own_keys(path: str, name: str, term: Mapping[str, Any]) -> Iterable[FieldError]:
    """Keys whose values the pod's own labels give; without a selector there is nothing that they could narrow."""
    keys = term.get(name) or []
    for index, key in enumerate(keys):
        yield from names.qualified_name(f"{path}.{name}[{index}]", key)
    if keys and term.get("labelSelector") is None:
        yield FieldError(f"{path}.{name}", keys, "needs a labelSelector, which it narrows; add one")
