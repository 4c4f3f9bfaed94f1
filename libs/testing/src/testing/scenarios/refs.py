"""How a scenario names things: ``Kind/name``, ``Kind/namespace/name``, ``namespace/name``, and paths into an object."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kube import KINDS, Key, KindInfo, Store
from kube.kinds import PREFERRED
from testing.scenarios.errors import ScenarioError

_REF = re.compile(r"([A-Z][A-Za-z]+)/([^/\s]+)(?:/([^/\s]+))?")
_PATH_PART = re.compile(r"""\.?([^.\[\]"]+)|\[(\d+)\]|\["([^"]+)"\]""")


@dataclass(frozen=True, slots=True)
class Ref:
    """An object by kind, namespace and name, as a scenario writes it: the kind's group is left open."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return (
            f"{self.kind}/{self.name}" if self.namespace == "default" else f"{self.kind}/{self.namespace}/{self.name}"
        )

    def candidates(self) -> list[Key]:
        """The keys that it may mean, the likeliest first."""
        return [Key(info.id, self.namespace if info.namespaced else "", self.name) for info in kinds_named(self.kind)]

    def key(self, store: Store) -> Key:
        """The key of the object that it means: one that is there, else the likeliest."""
        candidates = self.candidates()
        return next((key for key in candidates if store.get(key)), candidates[0])


def parse_ref(text: Any) -> Ref:
    """``Kind/name`` or ``Kind/namespace/name``; raises ScenarioError when it is neither or no kind of Tidegate's."""
    match = _REF.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ScenarioError(f"{text!r} is no reference; write Kind/name or Kind/namespace/name")
    kind, first, second = match.groups()
    if not kinds_named(kind):
        raise ScenarioError(f"{text!r}: {kind} is not a kind that Tidegate serves")
    return Ref(kind, first if second else "default", second or first)


def kinds_named(kind: str) -> list[KindInfo]:
    """The kinds that are called ``kind``, whatever their group; the one that the bare name means comes first."""
    found = [info for info in KINDS.values() if info.kind == kind]
    return sorted(found, key=lambda info: info.id != PREFERRED.get(kind))


def parse_pod_name(text: Any) -> tuple[str, str]:
    """``name`` or ``namespace/name`` as namespace and name; a name alone is in ``default``."""
    parts = text.split("/") if isinstance(text, str) else []
    if not parts or len(parts) > 2 or not all(parts):
        raise ScenarioError(f"{text!r} is no pod; write name or namespace/name")
    return (parts[0], parts[1]) if len(parts) == 2 else ("default", parts[0])


def pod_names(texts: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    """Every text as namespace and name."""
    return tuple(parse_pod_name(text) for text in texts)


def pod_title(pod: tuple[str, str]) -> str:
    """A pod as a scenario writes it."""
    return pod[1] if pod[0] == "default" else f"{pod[0]}/{pod[1]}"


def parse_path(text: Any) -> tuple[str | int, ...]:
    """A dotted path with ``[0]`` and ``["a/b"]`` as its steps; raises ScenarioError when it is none."""
    steps: list[str | int] = []
    position = 0
    while isinstance(text, str) and position < len(text):
        match = _PATH_PART.match(text, position)
        if match is None or (match[1] and (position > 0) != match[0].startswith(".")):
            raise ScenarioError(f'{text!r} is no path; write it as a.b[0]["x/y"]')
        steps.append(int(match[2]) if match[2] else match[1] or match[3])
        position = match.end()
    if not steps:
        raise ScenarioError(f'{text!r} is no path; write it as a.b[0]["x/y"]')
    return tuple(steps)


def follow(value: Any, path: Iterable[str | int]) -> Any:
    """What stands at ``path`` below ``value``; None where nothing does."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return None
    return value
