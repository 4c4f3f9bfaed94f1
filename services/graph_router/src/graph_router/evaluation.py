"""What becomes of a request on its way through a graph, as KServe's router has it."""

import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from graph_router.graph import ENSEMBLE, ROOT, SEQUENCE, SPLITTER, Graph, Node, Step
from kube.json_path import Path, exists

NO_ROUTE = "None of the routes matched with the switch condition"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Stopped(Exception):
    """The graph has no answer. ``status`` is what the caller is told."""

    def __init__(self, status: int, cause: str) -> None:
        super().__init__(cause)
        self.status = status


class Together(Protocol):
    """Runs all at once; the answers in the order of what was given."""

    def __call__(self, *runs: Coroutine[Any, Any, Answer]) -> Awaitable[list[Answer]]: ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``send`` asks the service at an address (raises Stopped where none answers), ``draw`` gives a whole number from 0 to 99."""

    graph: Graph
    send: Callable[[str, bytes], Awaitable[Answer]]
    together: Together
    draw: Callable[[], int]

    async def answer(self, body: bytes) -> Answer:
        """What the graph answers to ``body``. Raises Stopped."""
        return await self._node(self.graph.nodes[ROOT], body)

    async def _node(self, node: Node, body: bytes) -> Answer:
        if node.kind == SEQUENCE:
            return await self._sequence(node, body)
        if node.kind == ENSEMBLE:
            return await self._ensemble(node, body)
        chosen = chosen_by_weight(node, self.draw()) if node.kind == SPLITTER else chosen_by_condition(node, body)
        return await self._step(chosen, body)

    async def _step(self, step: Step, body: bytes) -> Answer:
        return await (self._node(self.graph.nodes[step.node], body) if step.node else self.send(step.url, body))

    async def _sequence(self, node: Node, body: bytes) -> Answer:
        """One after the other, each with the request unless it asks for the answer before it.

        A step whose condition the answer before it does not meet ends it, and so does a hard one that fails.
        """
        last: Answer | None = None
        for step in node.steps:
            if step.condition is not None and not meets(step.condition, last):
                assert last is not None
                return Answer(500, last.body)
            last = await self._step(step, last.body if step.takes_response and last is not None else body)
            if step.is_hard and not last.is_success:
                return last
        return last or Answer(200, body)

    async def _ensemble(self, node: Node, body: bytes) -> Answer:
        """All at once, their answers by name or number; the first hard one that fails answers for all."""
        answers = await self.together(*(self._step(step, body) for step in node.steps))
        found: dict[str, Any] = {}
        for index, (step, answer) in enumerate(zip(node.steps, answers, strict=True)):
            content = _content(answer.body, step.name or str(index))
            if step.is_hard and not answer.is_success:
                return Answer(answer.status, answer.body)
            found[step.name or str(index)] = content
        return Answer(200, json.dumps(found).encode())


def chosen_by_weight(node: Node, drawn: int) -> Step:
    """The step whose share ``drawn`` (0 to 99) falls into."""
    end = 0
    for step in node.steps:
        end += step.weight
        if drawn < end:
            return step
    return node.steps[-1]


def chosen_by_condition(node: Node, body: bytes) -> Step:
    """The first step whose condition the request meets; one without a condition takes any. Raises Stopped."""
    document = _parsed(body)
    for step in node.steps:
        if document is not None and (step.condition is None or exists(step.condition, document[0])):
            return step
    raise Stopped(404, NO_ROUTE)


def meets(condition: Path, last: Answer | None) -> bool:
    """Whether the answer before meets it. Raises Stopped where there is none, or it is no JSON."""
    document = _parsed(last.body) if last is not None else None
    if document is None:
        raise Stopped(500, "invalid response")
    return exists(condition, document[0])


def _content(body: bytes, name: str) -> Any:
    document = _parsed(body)
    if document is None:
        raise Stopped(500, f"the answer of {name} is no JSON")
    return document[0]


def _parsed(body: bytes) -> tuple[Any] | None:
    """The content, in a tuple since it may be null; None where there is none."""
    try:
        return (json.loads(body),)
    except ValueError:
        return None
