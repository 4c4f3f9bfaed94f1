"""JSON in annotations: texts that anybody may have written."""

import json
from math import isfinite
from typing import Any, NoReturn


def read_json(text: str) -> Any:
    """What ``text`` says; raises ValueError where it is no JSON, is nested beyond measure, or holds a number without measure."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number that can be counted with")
