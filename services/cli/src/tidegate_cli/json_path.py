"""kubectl's JSONPath: templates whose parts in braces are read from an object.

`{.metadata.name}`, `{.items[*].spec.nodeName}`, `{.status.conditions[?(@.type=="Ready")].status}`, `{..name}`,
`{range .items[*]}{.metadata.name}{"\\n"}{end}`. What is not there gives nothing.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Step = Callable[[list[Any]], list[Any]]
"""From the values so far to those that come next."""


class BadTemplate(ValueError):
    """A template that cannot be read; the text says where."""


_TOKEN = re.compile(
    r"""\.\.(?P<deep>(?:[\w\-/*]|\\.)+) | \.(?P<name>(?:[\w\-/*]|\\.)+) | \['(?P<quoted>[^']*)'\] | \["(?P<double>[^"]*)"\]
    | \[\?\((?P<filter>.*?)\)\] | \[(?P<slice>-?\d*:-?\d*(?::-?\d+)?)\] | \[(?P<places>\*|-?\d+(?:,-?\d+)*)\]""",
    re.VERBOSE,
)
_FILTER = re.compile(r"\s*@(?P<path>.*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?)\s*)?")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def find(path: str, root: Any) -> list[Any]:
    """The values at ``path``, which may begin with ``$`` or ``@``, or without a dot. Raises BadTemplate."""
    values = [root]
    for step in _steps(path):
        values = step(values)
    return values


def filled(template: str, root: Any) -> str:
    """The template with what its parts in braces stand for. Raises BadTemplate."""
    parts = list(_parts(template))
    text, end = _fill(parts, 0, root)
    if end < len(parts):
        raise BadTemplate("there is an {end} without a {range}")
    return text


def shown(value: Any) -> str:
    """A value as it is printed: texts as they are, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _parts(template: str) -> Iterator[tuple[str, str]]:
    """Texts as ``("text", …)``, what stands in braces as ``("range", path)``, ``("end", "")``, ``("path", path)``."""
    for brace in re.split(r"(\{(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^{}\"'])*\})", template):
        if not (brace.startswith("{") and brace.endswith("}")):
            if "{" in brace or "}" in brace:
                raise BadTemplate(f"a brace in {brace!r} has no other")
            yield "text", brace
            continue
        inside = brace[1:-1].strip()
        if inside[:1] in "\"'" and inside:
            yield "text", _unquoted(inside)
        elif inside == "end":
            yield "end", ""
        elif inside.startswith("range "):
            yield "range", inside.removeprefix("range ").strip()
        else:
            yield "path", inside


def _fill(parts: Sequence[tuple[str, str]], at: int, root: Any) -> tuple[str, int]:
    """The text of the parts from ``at`` up to the end, or to the ``end`` of a range, and where that is."""
    texts = []
    while at < len(parts):
        kind, content = parts[at]
        if kind == "end":
            break
        if kind == "text":
            texts.append(content)
        elif kind == "path":
            texts.append(" ".join(map(shown, find(content, root))))
        else:
            inner, end = "", _end_of(parts, at)
            for value in find(content, root):
                inner += _fill(parts, at + 1, value)[0]
            if not inner:
                _fill(parts, at + 1, {})  # what is wrong in there is told in any case
            texts.append(inner)
            at = end
        at += 1
    return "".join(texts), at


def _end_of(parts: Sequence[tuple[str, str]], at: int) -> int:
    depth = 0
    for place in range(at, len(parts)):
        depth += {"range": 1, "end": -1}.get(parts[place][0], 0)
        if not depth:
            return place
    raise BadTemplate("a {range} has no {end}")


def _steps(path: str) -> Iterator[Step]:
    rest = path.strip().removeprefix("$").removeprefix("@")
    if rest and rest[0] not in ".[":
        rest = f".{rest}"
    rest = "" if rest == "." else rest
    at = 0
    while at < len(rest):
        found = _TOKEN.match(rest, at)
        if found is None:
            raise BadTemplate(f"{path!r} cannot be read from {rest[at:]!r} on")
        yield _step(found)
        at = found.end()


def _step(found: re.Match[str]) -> Step:
    kind = str(found.lastgroup)
    text = found[kind]
    if kind == "deep":
        name = re.sub(r"\\(.)", r"\1", text)
        return lambda values: [item for value in values for item in _deep(value, name)]
    if kind in ("name", "quoted", "double"):
        name = re.sub(r"\\(.)", r"\1", text) if kind == "name" else text
        return lambda values: [item for value in values for item in _named(value, name)]
    if kind == "filter":
        return _filter(text)
    if kind == "slice":
        bounds = slice(*(int(part) if part else None for part in text.split(":")))
        return lambda values: [item for value in values if isinstance(value, list) for item in value[bounds]]
    if text == "*":
        return lambda values: [item for value in values for item in _named(value, "*")]
    places = [int(part) for part in text.split(",")]
    return lambda values: [
        value[place]
        for value in values
        if isinstance(value, list)
        for place in places
        if -len(value) <= place < len(value)
    ]


def _named(value: Any, name: str) -> list[Any]:
    if name == "*":
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    return [value[name]] if isinstance(value, dict) and name in value else []


def _deep(value: Any, name: str) -> Iterator[Any]:
    yield from _named(value, name)
    for item in _named(value, "*"):
        yield from _deep(item, name)


def _filter(text: str) -> Step:
    found = _FILTER.fullmatch(text)
    if found is None:
        raise BadTemplate(f'{text!r} is no condition such as @.type=="Ready"')
    path, operator, wanted = found["path"], found["operator"], found["value"]
    compare, right = _COMPARE.get(operator or ""), _literal(wanted) if wanted else None

    def holds(item: Any) -> bool:
        values = find(path, item)
        if compare is None:
            return bool(values)
        try:
            return any(compare(value, right) for value in values)
        except TypeError:
            return False

    return lambda values: [item for value in values if isinstance(value, list) for item in value if holds(item)]


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return _unquoted(text)
    try:
        return json.loads(text)
    except ValueError:
        raise BadTemplate(f"{text!r} is no value; write texts in quotes") from None


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[-1] != text[0]:
        raise BadTemplate(f"{text!r} has no closing quote")
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), text[1:-1])
