"""How a service wants its new revisions taken into use: the annotations, as far as they can be wrong."""

import re
from collections.abc import Iterable, Mapping

from admission.domain.errors import FieldError
from admission.domain.shapes import one_of
from kube import parse_duration
from resources import QuantityError, parse_milli

PREFIX = "tidegate.dev/rollout"
_KINDS = ("canary", "blue-green")
_STEP = re.compile(r"(\d+):(\S+)")
_PERCENT, _TIMES = ("risk", "errors", "slower"), ("ready", "lost")
_KNOWN = frozenset(f"{PREFIX}-{name}" for name in ("steps", "requests", *_PERCENT, *_TIMES))


def check_plan(annotations: Mapping[str, str]) -> Iterable[FieldError]:
    """Each annotation that begins with the prefix is one that is known, and makes sense."""
    given = {name: text for name, text in annotations.items() if name.startswith(PREFIX)}
    yield from one_of(_path(PREFIX), given.get(PREFIX), _KINDS)
    for name, text in given.items():
        if name != PREFIX and name not in _KNOWN:
            yield FieldError(_path(name), text, f"is none of {', '.join(sorted(_KNOWN))}")
        elif name != PREFIX and PREFIX not in given:
            yield FieldError(_path(name), text, f"means nothing without {PREFIX}")
        elif rule := _wrong(name.removeprefix(f"{PREFIX}-"), text):
            yield FieldError(_path(name), text, rule)


def _wrong(name: str, text: str) -> str:
    if name == "steps":
        return _wrong_steps(text)
    if name == "requests":
        return "" if text.isdigit() else "must be a whole number"
    if name in _PERCENT:
        return "" if _is_percent(text) else "must be a percentage from 0.001 to 100, such as 0.5"
    return "must be a time such as 10m" if name in _TIMES and not _is_time(text) else ""


def _wrong_steps(text: str) -> str:
    percents = [0]
    for part in text.split(","):
        found = _STEP.fullmatch(part.strip())
        if found is None or not _is_time(found[2]):
            return "must be steps such as 5:2m,50:10m, of a percentage and a time"
        percents.append(int(found[1]))
    rises = percents == sorted(set(percents)) and percents[-1] <= 100
    return "" if rises else "must rise from above 0 to at most 100 percent"


def _is_percent(text: str) -> bool:
    try:
        return 1 <= parse_milli(text) <= 100_000
    except QuantityError:
        return False


def _is_time(text: str) -> bool:
    try:
        return parse_duration(text) >= 0
    except ValueError:
        return False


def _path(name: str) -> str:
    return f'metadata.annotations["{name}"]'
