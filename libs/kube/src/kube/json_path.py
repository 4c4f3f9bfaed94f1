"""Paths into JSON as GJSON writes them, as far as conditions of InferenceGraphs use them.

Keys (``*`` and ``?`` stand for letters, a backslash takes a letter as it is), numbers of elements, ``#`` (all elements, or how many),
``#(query)`` (the first element that fits), ``#(query)#`` (all that fit), ``@this``, and lists of paths ``[a,b]``. After ``.`` what
follows a ``#`` is looked for in each element, after ``|`` in the list. A query is a path, an operator out of ``== != < <= > >= % !%``
and a value, each of which may be left out. Everything else of GJSON is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

_OPERATORS = ("==", "!=", "<=", ">=", "!%", "<", ">", "%")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class PathError(ValueError):
    """The text is no path that is understood here."""


class _Missing:
    """What is not there: null is."""


MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Key:
    """A field of an object, or the number of an element."""

    pattern: str
    is_pattern: bool


@dataclass(frozen=True, slots=True)
class Every:
    """All elements; how many they are, where nothing follows."""


@dataclass(frozen=True, slots=True)
class Query:
    """Elements in which ``path`` leads to something that compares with ``value``; the first one, or ``all``."""

    path: "Path"
    operator: str
    value: str
    all: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """The list of what several paths lead to."""

    paths: tuple["Path", ...]


Part = Key | Every | Query | Listed
Path = tuple[tuple[str, Part], ...]
"""Parts, each with what stands before it: ``.`` or ``|``. None of them is the thing itself."""


def parse(text: str) -> Path:
    """The path that ``text`` is. Raises PathError."""
    if not text.strip():
        raise PathError("a path is empty")
    parts: list[tuple[str, Part]] = []
    for before, word in _words(text):
        part = _part(word)
        if part is not None:
            parts.append((before, part))
    return tuple(parts)


def exists(path: Path, document: Any) -> bool:
    """Whether the path leads to something in ``document``, which is JSON as Python has it."""
    return not isinstance(find(path, document), _Missing)


def find(path: Path, document: Any) -> Any:
    """What the path leads to; MISSING where it leads nowhere."""
    value = document
    for index, (_, part) in enumerate(path):
        rest = path[index + 1 :]
        match part:
            case Listed(paths):
                value = [found for one in paths if not isinstance(found := find(one, value), _Missing)]
            case Key():
                value = _field(part, value)
            case Every():
                if not isinstance(value, list):
                    return MISSING
                return _spread(value, rest) if rest else len(value)
            case Query():
                fitting = _fitting(part, value)
                if part.all:
                    return MISSING if fitting is None else _spread(fitting, rest)
                value = fitting[0] if fitting else MISSING
        if isinstance(value, _Missing):
            return MISSING
    return value


def _spread(elements: list[Any], rest: Path) -> Any:
    """What follows, in each element or in the list as a whole."""
    if not rest or rest[0][0] == "|":
        return find(rest, elements)
    return [found for one in elements if not isinstance(found := find(rest, one), _Missing)]


def _fitting(query: Query, value: Any) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    return [element for element in value if _fits(query, find(query.path, element))]


def _fits(query: Query, found: Any) -> bool:
    if isinstance(found, _Missing):
        return False
    if not query.operator:
        return True
    if query.operator in ("%", "!%"):
        return isinstance(found, str) and fnmatchcase(found, _plain_pattern(query.value)) == (query.operator == "%")
    if isinstance(found, bool) or found is None:
        shown = {True: "true", False: "false", None: "null"}[found]
        return _compared(shown, query.value, query.operator) if query.operator in ("==", "!=") else False
    if isinstance(found, int | float):
        try:
            return _compared(float(found), float(query.value), query.operator)
        except ValueError:
            return query.operator == "!="
    return isinstance(found, str) and _compared(found, query.value, query.operator)


def _compared(one: Any, other: Any, operator: str) -> bool:
    results: dict[str, bool] = {
        "==": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }
    return results[operator]


def _plain_pattern(pattern: str) -> str:
    """Brackets mean themselves."""
    return pattern.replace("[", "[[]")


def _field(key: Key, value: Any) -> Any:
    if isinstance(value, dict):
        if not key.is_pattern:
            return value.get(key.pattern, MISSING)
        return next((one for name, one in value.items() if fnmatchcase(name, key.pattern)), MISSING)
    if isinstance(value, list) and key.pattern.isdigit() and int(key.pattern) < len(value):
        return value[int(key.pattern)]
    return MISSING


def _part(word: str) -> Part | None:
    if word == "@this":
        return None
    if word == "#":
        return Every()
    if word.startswith("#("):
        return _query(word)
    if word.startswith("[") and word.endswith("]"):
        return Listed(tuple(parse(one) for one in _split(word[1:-1], ",")))
    if not word or word[0] in "@{!#[":
        raise PathError(f"{word!r} is no key, no element, no query and no list of paths")
    letters, is_pattern, escaped = "", False, False
    for letter in word:
        if not escaped and letter == "\\":
            escaped = True
            continue
        special = letter in "*?"
        is_pattern |= special and not escaped
        letters += f"[{letter}]" if special and escaped else letter
        escaped = False
    plain = letters if is_pattern else letters.replace("[*]", "*").replace("[?]", "?")
    return Key(plain, is_pattern)


def _query(word: str) -> Query:
    every = word.endswith(")#")
    inner = word[2 : -2 if every else -1]
    if not word.endswith((")", ")#")) or not inner.strip():
        raise PathError(f"{word!r} is no query")
    for at, depth, quoted in _levels(inner):
        operator = next((one for one in _OPERATORS if inner.startswith(one, at)), "")
        if depth or quoted or not operator:
            continue
        value = inner[at + len(operator) :].strip()
        if not value or value.startswith("~"):
            raise PathError(f"{inner!r} compares with no value that is understood")
        if value[0] == '"':
            if len(value) < 2 or value[-1] != '"':
                raise PathError(f"{inner!r} has a quote without its end")
            value = value[1:-1].replace('\\"', '"')
        path = inner[:at].strip()
        return Query(parse(path) if path else (), operator, value, every)
    return Query(parse(inner), "", "", every)


def _words(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a path, each with the separator before it."""
    start, before = 0, "."
    for at, depth, quoted in _levels(text):
        if text[at] in ".|" and not depth and not quoted:
            yield before, text[start:at]
            start, before = at + 1, text[at]
    yield before, text[start:]


def _split(text: str, separator: str) -> Sequence[str]:
    cuts = [at for at, depth, quoted in _levels(text) if text[at] == separator and not depth and not quoted]
    return [text[start + 1 : end] for start, end in zip([-1, *cuts], [*cuts, len(text)], strict=True)]


def _levels(text: str) -> Iterator[tuple[int, int, bool]]:
    """Each letter that is not taken as it is: where it is, in how many brackets, and whether in quotes. Raises PathError."""
    closing: list[str] = []
    quoted = escaped = False
    for at, letter in enumerate(text):
        if escaped or letter == "\\":
            escaped = not escaped
            continue
        if letter == '"':
            quoted = not quoted
        elif not quoted and closing and letter == closing[-1]:
            closing.pop()
        elif not quoted and letter in _CLOSING:
            closing.append(_CLOSING[letter])
        yield at, len(closing), quoted
    if closing or quoted:
        raise PathError(f"{text!r} has a bracket or a quote without its end")
