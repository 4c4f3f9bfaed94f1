"""Evaluating expressions of the Common Expression Language as far as device selectors use it."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from gang_scheduler.domain.dra.cel_syntax import CelError, Node, parse
from gang_scheduler.domain.dra.cel_values import FUNCTIONS, METHODS, Maybe

Scope = Mapping[str, Any]


@lru_cache(maxsize=4096)
def compiled(text: str) -> Node:
    """The tree of an expression, read once; raises CelError."""
    return parse(text)


def holds(text: str, scope: Scope) -> bool:
    """Whether an expression is true; raises CelError when it cannot be told."""
    value = evaluate(compiled(text), scope)
    if not isinstance(value, bool):
        raise CelError(f"{text!r} is {value!r}, not true or false")
    return value


def evaluate(node: Node, scope: Scope) -> Any:
    """The value of a tree where the names mean what ``scope`` says; raises CelError."""
    try:
        return _EVALUATE[node[0]](node, scope)
    except CelError:
        raise
    except (
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        ZeroDivisionError,
        OverflowError,
        RecursionError,
    ) as error:
        raise CelError(f"{type(error).__name__}: {error}") from None


def _name(node: Node, scope: Scope) -> Any:
    if node[1] not in scope:
        raise CelError(f"there is no {node[1]}")
    return scope[node[1]]


def _index(node: Node, scope: Scope) -> Any:
    holder, key = evaluate(node[1], scope), evaluate(node[2], scope)
    if isinstance(holder, Maybe):
        if not holder.there:
            return holder
        return _looked_up(holder.value, key)
    found = _looked_up(holder, key)
    if node[3]:
        return found
    if not found.there:
        raise CelError(f"there is no {key!r}")
    return found.value


def _looked_up(holder: Any, key: Any) -> Maybe:
    if isinstance(holder, list):
        return Maybe(True, holder[key]) if 0 <= key < len(holder) else Maybe(False)
    if not isinstance(holder, Mapping):
        raise CelError(f"{holder!r} has no fields")
    try:
        return Maybe(True, holder[key])
    except KeyError:
        return Maybe(False)


def _call(node: Node, scope: Scope) -> Any:
    _, target, name, arguments = node
    if target is None:
        if name == "has":
            return _has(arguments, scope)
        return _function(FUNCTIONS, name)(*(evaluate(one, scope) for one in arguments))
    if target == ("name", "cel") and name == "bind":
        variable, value, body = arguments
        return evaluate(body, {**scope, variable[1]: evaluate(value, scope)})
    if target == ("name", "optional"):
        return Maybe(False) if name == "none" else Maybe(True, evaluate(arguments[0], scope))
    if name in _MACROS and len(arguments) == 2 and arguments[0][0] == "name":
        items = list(evaluate(target, scope))
        variable, body = arguments[0][1], arguments[1]
        return _MACROS[name](items, [evaluate(body, {**scope, variable: item}) for item in items])
    return _function(METHODS, name)(evaluate(target, scope), *(evaluate(one, scope) for one in arguments))


def _function(among: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    if name not in among:
        raise CelError(f"there is no function {name}")
    return among[name]


_MACROS: Mapping[str, Callable[[list[Any], list[Any]], Any]] = {
    "exists": lambda items, verdicts: any(verdicts),
    "all": lambda items, verdicts: all(verdicts),
    "exists_one": lambda items, verdicts: sum(map(bool, verdicts)) == 1,
    "filter": lambda items, verdicts: [item for item, verdict in zip(items, verdicts, strict=True) if verdict],
    "map": lambda items, verdicts: verdicts,
}


def _has(arguments: tuple[Node, ...], scope: Scope) -> bool:
    if len(arguments) != 1 or arguments[0][0] != "index":
        raise CelError("has() asks for one field, as in has(a.b)")
    _, holder, key, _ = arguments[0]
    return _looked_up(evaluate(holder, scope), evaluate(key, scope)).there


def _binary(node: Node, scope: Scope) -> Any:
    _, operator, left, right = node
    if operator in ("&&", "||"):
        return _logical(operator == "||", left, right, scope)
    one, other = evaluate(left, scope), evaluate(right, scope)
    return _OPERATORS[operator](one, other)


def _logical(decisive: bool, left: Node, right: Node, scope: Scope) -> bool:
    """``&&`` and ``||`` do not mind an error on one side where the other side decides."""
    error: CelError | None = None
    for side in (left, right):
        try:
            value = evaluate(side, scope)
        except CelError as found:
            error = error or found
            continue
        if not isinstance(value, bool):
            raise CelError(f"{value!r} is neither true nor false")
        if value is decisive:
            return decisive
    if error is not None:
        raise error
    return not decisive


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _quotient(one: int, other: int) -> int:
    """Rounded towards zero."""
    size = abs(one) // abs(other)
    return size if (one < 0) is (other < 0) else -size


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": _equal,
    "!=": lambda one, other: not _equal(one, other),
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "in": lambda one, other: one in other,
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: _quotient(one, other) if isinstance(one, int) and isinstance(other, int) else one / other,
    "%": lambda one, other: one - other * _quotient(one, other),
}


def _condition(node: Node, scope: Scope) -> Any:
    return evaluate(node[2] if evaluate(node[1], scope) is True else node[3], scope)


def _unary(node: Node, scope: Scope) -> Any:
    value = evaluate(node[2], scope)
    if node[1] == "-":
        return -value
    if not isinstance(value, bool):
        raise CelError(f"{value!r} is neither true nor false")
    return not value


_EVALUATE: Mapping[str, Callable[[Node, Scope], Any]] = {
    "value": lambda node, scope: node[1],
    "name": _name,
    "index": _index,
    "call": _call,
    "binary": _binary,
    "unary": _unary,
    "if": _condition,
    "list": lambda node, scope: [evaluate(one, scope) for one in node[1]],
}
