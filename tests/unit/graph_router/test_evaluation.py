"""What becomes of a request on its way through a graph."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_router.evaluation import Answer, Evaluation, Stopped, chosen_by_weight
from graph_router.graph import Graph

BODIES: dict[str, Any] = {
    "a": {"predictions": [1]},
    "b": {"predictions": [2]},
    "text": "no JSON",
    "sick": {"error": "ill"},
}


async def together(*runs: Coroutine[Any, Any, Answer]) -> list[Answer]:
    return [await run for run in runs]


def run(nodes: dict[str, Any], body: Any = None, drawn: int = 0) -> tuple[int, Any, list[tuple[str, Any]]]:
    """Status, content, and who was asked what."""
    asked: list[tuple[str, Any]] = []

    async def send(url: str, content: bytes) -> Answer:
        asked.append((url, json.loads(content)))
        if url == "gone":
            raise Stopped(500, "gone")
        text = b"no JSON" if url == "text" else json.dumps(BODIES.get(url, {})).encode()
        return Answer(503 if url == "sick" else 200, text)

    graph = Graph.of(json.dumps({"nodes": nodes}))
    evaluation = Evaluation(graph, send, together, lambda: drawn)
    try:
        answer = asyncio.run(evaluation.answer(json.dumps(body or {"in": 1}).encode()))
    except Stopped as error:
        return error.status, str(error), asked
    return answer.status, json.loads(answer.body) if answer.body != b"no JSON" else "no JSON", asked


def node(kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"routerType": kind, "steps": list(steps)}


def ask(url: str, **more: Any) -> dict[str, Any]:
    return {"serviceUrl": url, **more}


@pytest.mark.parametrize(
    ("steps", "status", "content", "asked"),
    [
        ((ask("a"), ask("b")), 200, BODIES["b"], [("a", {"in": 1}), ("b", {"in": 1})]),
        ((ask("a"), ask("b", data="$response")), 200, BODIES["b"], [("a", {"in": 1}), ("b", BODIES["a"])]),
        ((ask("a"), ask("sick")), 503, BODIES["sick"], [("a", {"in": 1}), ("sick", {"in": 1})]),
        ((ask("sick"), ask("b")), 200, BODIES["b"], [("sick", {"in": 1}), ("b", {"in": 1})]),
        ((ask("sick", dependency="Hard"), ask("b")), 503, BODIES["sick"], [("sick", {"in": 1})]),
        (
            (ask("a"), ask("b", condition="[@this].#(predictions.0==1)")),
            200,
            BODIES["b"],
            [("a", {"in": 1}), ("b", {"in": 1})],
        ),
        ((ask("a"), ask("b", condition="predictions.1")), 500, BODIES["a"], [("a", {"in": 1})]),
        ((ask("text"), ask("b", condition="predictions")), 500, "invalid response", [("text", {"in": 1})]),
        ((ask("a"), ask("gone")), 500, "gone", [("a", {"in": 1}), ("gone", {"in": 1})]),
    ],
)
def test_a_sequence(steps: Any, status: int, content: Any, asked: Any) -> None:
    assert run({"root": node("Sequence", *steps)}) == (status, content, asked)


@pytest.mark.parametrize(
    ("body", "status", "content"),
    [
        ({"kind": "cat"}, 200, BODIES["a"]),
        ({"kind": "dog"}, 200, BODIES["b"]),
        ({"kind": "fish"}, 404, "None of the routes matched with the switch condition"),
    ],
)
def test_a_switch(body: Any, status: int, content: Any) -> None:
    cases = (ask(url, condition=f'[@this].#(kind=="{kind}")') for url, kind in (("a", "cat"), ("b", "dog")))
    assert run({"root": node("Switch", *cases)}, body)[:2] == (status, content)


@pytest.mark.parametrize(
    ("steps", "status", "content"),
    [
        ((ask("a", name="first"), ask("b")), 200, {"first": BODIES["a"], "1": BODIES["b"]}),
        ((ask("a"), ask("sick")), 200, {"0": BODIES["a"], "1": BODIES["sick"]}),
        ((ask("a"), ask("sick", dependency="Hard")), 503, BODIES["sick"]),
        ((ask("a"), ask("gone")), 500, "gone"),
        ((ask("text", name="t"),), 500, "the answer of t is no JSON"),
    ],
)
def test_an_ensemble(steps: Any, status: int, content: Any) -> None:
    assert run({"root": node("Ensemble", *steps)})[:2] == (status, content)


def test_nodes_lead_to_nodes() -> None:
    inner = node("Splitter", ask("a", weight=30), ask("b", weight=70))
    graph = {"root": node("Sequence", ask("sick"), {"nodeName": "inner"}), "inner": inner}
    assert run(graph, drawn=29)[1] == BODIES["a"] and run(graph, drawn=30)[1] == BODIES["b"]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_each_weight_is_its_share_of_a_hundred_exactly(weights: list[int]) -> None:
    weights = [*weights, max(0, 100 - sum(weights))] if sum(weights) <= 100 else [60, 40]
    steps = [ask(str(index), weight=weight) for index, weight in enumerate(weights)]
    chosen = Graph.of(json.dumps({"nodes": {"root": node("Splitter", *steps)}})).nodes["root"]
    drawn = [chosen_by_weight(chosen, number).url for number in range(100)]
    assert [drawn.count(str(index)) for index in range(len(weights))] == weights


@pytest.mark.parametrize(
    "nodes",
    [
        {"first": node("Sequence", ask("a"))},
        {"root": node("Loop", ask("a"))},
        {"root": node("Sequence", {"nodeName": "gone"})},
        {"root": node("Sequence", {"serviceName": "a"})},
        {"root": node("Switch", ask("a", condition="#("))},
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(nodes: Any) -> None:
    with pytest.raises(ValueError):
        Graph.of(json.dumps({"nodes": nodes}))
