"""ResourceQuota: amounts are quantities, scopes are those of Kubernetes and do not contradict each other."""

from collections.abc import Iterable, Iterator

from admission.domain.errors import FieldError
from admission.domain.quantities import check_amounts
from admission.domain.shapes import AMOUNTS, TEXT, TEXTS, ListOf, fields, one_of
from admission.domain.world import Review, World
from kube import Manifest, Object
from kube.resource_quotas import RESOURCE_QUOTA, SCOPES, counts_of, is_scoped
from resources import parse_amounts, subtract
from resources.amounts import format_amount

RESOURCE_QUOTA_SPEC = fields(
    hard=AMOUNTS,
    scopes=TEXTS,
    scopeSelector=fields(matchExpressions=ListOf(fields(scopeName=TEXT, operator=TEXT, values=TEXTS))),
)
UNHEEDED = "VolumeAttributesClass"
_SELECTORS = "spec.scopeSelector.matchExpressions"
_OPPOSITES = (("Terminating", "NotTerminating"), ("BestEffort", "NotBestEffort"))
_WITH_VALUES = ("In", "NotIn")


def check_resource_quota(review: Review) -> Iterable[FieldError]:
    """Amounts, the names of scopes, and what may be said of each."""
    yield from check_amounts("spec.hard", review.spec.get("hard"))
    named = dict(_named(review.spec))
    for path, name in named.items():
        yield from one_of(path, name, (*SCOPES, UNHEEDED))
    for one, other in _OPPOSITES:
        if {one, other} <= set(named.values()):
            path = next(path for path, name in named.items() if name == other)
            yield FieldError(path, other, f"contradicts {one}: no pod is both")
    for index, item in enumerate((review.spec.get("scopeSelector") or {}).get("matchExpressions") or ()):
        yield from _check_expression(f"{_SELECTORS}[{index}]", item)


def check_quota_room(review: Review) -> Iterator[FieldError]:
    """The quotas of its namespace have room for the object. Pods may be there: their groups wait at the gate of the queues."""
    kind, space = review.key.kind, review.key.namespace
    quotas = [] if kind == "Pod" or not space else _quotas_in(space, review.world)
    if not quotas:
        return
    asked = subtract(
        counts_of(Object(review.key, "", {}, review.manifest)), counts_of(review.old) if review.old else {}
    )
    for quota in quotas:
        hard = quota.spec.get("hard") or {}
        for name in sorted(name for name, amount in asked.items() if amount > 0 and name in hard):
            limit, used = parse_amounts({name: hard[name]})[name], _used(name, review)
            if used + asked[name] > limit:
                need, have, most = (format_amount(name, amount) for amount in (asked[name], used, limit))
                text = f"quota {quota.name} of the namespace: needs {name} {need}, {have} of {most} used"
                yield FieldError("metadata.namespace", space, text)


def _quotas_in(namespace: str, world: World) -> list[Object]:
    """The quotas that limit objects there: those with scopes are about pods."""
    known = world.of_kind(RESOURCE_QUOTA)
    return [known[key] for key in sorted(known) if key.namespace == namespace and not is_scoped(known[key].spec)]


def _used(name: str, review: Review) -> int:
    """What objects of the kind count for there already."""
    space, others = review.key.namespace, review.world.of_kind(review.key.kind)
    return sum(counts_of(item).get(name, 0) for key, item in others.items() if key.namespace == space)


def warn_resource_quota(review: Review) -> Iterator[str]:
    """A scope that nothing here is about."""
    for path, name in _named(review.spec):
        if name == UNHEEDED:
            yield f"{path}: {UNHEEDED} is not heeded: a quota with this scope counts nothing"


def _named(spec: Manifest) -> Iterator[tuple[str, str]]:
    for index, name in enumerate(spec.get("scopes") or ()):
        yield f"spec.scopes[{index}]", name
    for index, item in enumerate((spec.get("scopeSelector") or {}).get("matchExpressions") or ()):
        yield f"{_SELECTORS}[{index}].scopeName", str(item.get("scopeName") or "")


def _check_expression(path: str, item: Manifest) -> Iterable[FieldError]:
    operator, values = str(item.get("operator") or ""), item.get("values")
    by_value = item.get("scopeName") in ("PriorityClass", UNHEEDED)
    allowed = (*_WITH_VALUES, "Exists", "DoesNotExist") if by_value else ("Exists",)
    yield from one_of(f"{path}.operator", operator, allowed)
    if operator in _WITH_VALUES and not values:
        yield FieldError(f"{path}.values", values, f"is required with {operator}")
    if operator not in _WITH_VALUES and values:
        yield FieldError(f"{path}.values", values, f"must be empty with {operator}")
