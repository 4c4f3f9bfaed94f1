"""Label selectors: their shape, their rules, and whether they match."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.shapes import TEXT, TEXT_MAP, TEXTS, ListOf, fields, one_of

SELECTOR = fields(matchLabels=TEXT_MAP, matchExpressions=ListOf(fields(key=TEXT, operator=TEXT, values=TEXTS)))
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def check_selector(path: str, selector: Mapping[str, Any] | None) -> Iterable[FieldError]:
    """Keys and values are those of labels, operators are known and have the values they need."""
    if not selector:
        return
    yield from names.labels(f"{path}.matchLabels", selector.get("matchLabels") or {})
    for index, wanted in enumerate(selector.get("matchExpressions") or []):
        yield from check_expression(f"{path}.matchExpressions[{index}]", wanted, OPERATORS)


def check_expression(path: str, wanted: Mapping[str, Any], operators: Iterable[str]) -> Iterable[FieldError]:
    """One expression ``key operator values``."""
    yield from names.qualified_name(f"{path}.key", wanted.get("key") or "")
    operator, values = wanted.get("operator") or "", wanted.get("values") or []
    yield from one_of(f"{path}.operator", operator, operators)
    if operator in ("In", "NotIn") and not values:
        yield FieldError(f"{path}.values", values, f"must name at least one value for {operator}")
    if operator in ("Exists", "DoesNotExist") and values:
        yield FieldError(f"{path}.values", values, f"must be empty for {operator}")
    if operator in ("Gt", "Lt") and (len(values) != 1 or not values[0].lstrip("-").isdigit()):
        yield FieldError(f"{path}.values", values, f"must be one whole number for {operator}")


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether ``labels`` satisfy the selector; an empty one matches all, None nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression.get("key") or ""), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
