"""An InferenceGraph as it was handed to the router, with an address for each step that is no node."""

import json
from dataclasses import dataclass
from typing import Any

from kube.json_path import Path, parse

ROOT = "root"
SEQUENCE, SPLITTER, ENSEMBLE, SWITCH = "Sequence", "Splitter", "Ensemble", "Switch"
_KINDS = (SEQUENCE, SPLITTER, ENSEMBLE, SWITCH)


@dataclass(frozen=True, slots=True)
class Step:
    """One of ``node`` and ``url`` is given. ``is_hard``: whatever follows needs it to succeed."""

    name: str
    node: str
    url: str
    takes_response: bool
    condition: Path | None
    weight: int
    is_hard: bool


@dataclass(frozen=True, slots=True)
class Node:
    kind: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """``timeout_seconds`` is how long one step may take, None for as long as it does."""

    nodes: dict[str, Node]
    timeout_seconds: int | None

    @classmethod
    def of(cls, text: str) -> "Graph":
        """The spec of an InferenceGraph as JSON. Raises ValueError, KeyError or TypeError for what is none."""
        spec: dict[str, Any] = json.loads(text)
        nodes = {name: _node(name, one) for name, one in spec["nodes"].items()}
        if ROOT not in nodes:
            raise ValueError("the graph has no root")
        missing = {step.node for node in nodes.values() for step in node.steps if step.node} - nodes.keys()
        if missing:
            raise ValueError(f"{', '.join(sorted(missing))}: no nodes of the graph")
        client = (spec.get("routerTimeouts") or {}).get("serviceClient")
        timeout = client if client is not None else spec.get("timeout")
        return cls(nodes, None if timeout is None else int(timeout))


def _node(name: str, given: dict[str, Any]) -> Node:
    if given.get("routerType") not in _KINDS:
        raise ValueError(f"{name}: routerType {given.get('routerType')} is none of {', '.join(_KINDS)}")
    return Node(given["routerType"], tuple(_step(name, one) for one in given["steps"]))


def _step(node: str, given: dict[str, Any]) -> Step:
    if not given.get("nodeName") and not given.get("serviceUrl"):
        raise ValueError(f"{node}: the step {given.get('name') or given.get('serviceName')} has no address")
    return Step(
        str(given.get("name") or ""),
        str(given.get("nodeName") or ""),
        str(given.get("serviceUrl") or ""),
        given.get("data") == "$response",
        parse(given["condition"]) if given.get("condition") else None,
        int(given.get("weight") or 0),
        given.get("dependency") == "Hard",
    )
