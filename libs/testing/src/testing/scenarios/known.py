"""Scenarios that are known not to hold, each with the reason: they are expected to fail, and noticed when they pass."""

from collections.abc import Collection, Mapping
from pathlib import Path

import yaml

from testing.scenarios.errors import ScenarioError
from testing.scenarios.fields import at, each, mapping, word
from testing.scenarios.run import Result


def load_known_differences(path: Path) -> dict[str, str]:
    """The reasons by scenario name, from a list of ``{scenario, reason}``; raises ScenarioError naming file and entry."""
    return at(str(path), _read, path)


def _read(path: Path) -> dict[str, str]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError) as error:
        raise ScenarioError(f"it cannot be read: {error}") from None
    entries = each("", document, _entry)
    names = [name for name, _ in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ScenarioError(f"{twice[0]} is listed twice")
    return dict(entries)


def _entry(value: object) -> tuple[str, str]:
    entry = mapping(value, ("scenario", "reason"))
    return at("scenario", word, entry.get("scenario")), at("reason", word, entry.get("reason"))


def strangers(known: Mapping[str, str], names: Collection[str]) -> list[str]:
    """Listed names that no scenario has, sorted."""
    return sorted(set(known) - set(names))


def surprise(result: Result, known: Mapping[str, str]) -> str:
    """What is wrong with a known difference that holds after all, in words; "" where there is nothing wrong."""
    if not result.passed or result.name not in known:
        return ""
    return (
        f"{result.area}/{result.name} passes, but is listed as a known difference ({known[result.name]}): take it off"
    )
