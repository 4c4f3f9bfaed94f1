"""How results are told: a line for each scenario and one for all, or the same as JSON."""

import json
from collections.abc import Iterable

from testing.scenarios.run import Result


def line(result: Result) -> str:
    """``PASS area/name``, or ``FAIL area/name: step N, matcher, wanted …, got …``."""
    name = f"{result.area}/{result.name}"
    if result.passed:
        return f"PASS {name}"
    told = f"FAIL {name}: step {result.step}, {result.matcher}, wanted {result.wanted}, got {result.got}"
    return " ".join(told.split())


def closing(results: Iterable[Result]) -> str:
    """``N passed, N failed``."""
    outcomes = [result.passed for result in results]
    return f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed"


def as_json(results: Iterable[Result]) -> str:
    """All results as one JSON object; a difference only where there is one."""
    told = list(results)
    passed = sum(result.passed for result in told)
    document = {"passed": passed, "failed": len(told) - passed, "scenarios": [_entry(result) for result in told]}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _entry(result: Result) -> dict[str, object]:
    entry: dict[str, object] = {"area": result.area, "name": result.name, "passed": result.passed}
    if not result.passed:
        entry |= {"step": result.step, "matcher": result.matcher, "wanted": result.wanted, "got": result.got}
    return entry
