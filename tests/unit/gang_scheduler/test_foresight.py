"""What a placement spoils: the vectors against the plain sum, what was kept against what is computed anew, and where pods go."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.nodes.filters import StaticMasks
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.room.shape_view import ShapeView
from gang_scheduler.domain.score.appraisal import Appraisal
from gang_scheduler.domain.score.basis import read, written
from gang_scheduler.domain.score.foresight import FIRST_LOOK, MIXED
from gang_scheduler.domain.score.mixture import PATIENCE, ask_of
from gang_scheduler.domain.score.prices import BEST, HALF, PRICE, Prices
from gang_scheduler.domain.score.scoring import Placement
from gang_scheduler.domain.turns.memory import load
from kube import Event, Key

CORE, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"
QUIET = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ASKS = st.tuples(st.sampled_from([0, 20, 47, 81, 100, 200, 400]), st.integers(1, 12), st.sampled_from(["", "a", "b"]))


def add_node(toy: Any, name: str, cards: int, cpu: int, model: str) -> None:
    percent = 100 * cards
    toy.node(name, cpu=cpu, memory="256Gi", labels={"model": model}, **{CORE: percent, RATIO: percent})


def add_pod(toy: Any, name: str, percent: int, cpu: int, model: str = "") -> None:
    requests: dict[str, object] = {"cpu": cpu, "memory": f"{2 * cpu}Gi"}
    if percent:
        requests |= {CORE: percent, RATIO: percent}
    toy.pods(name, 1, requests=requests, **({"nodeSelector": {"model": model}} if model else {}))


def plain_worth(appraisal: Appraisal, slot: int, cpu: float, memory: float, cards: list[int]) -> float:
    """The worth of one node, term by term."""
    prices, at = appraisal.prices, int(appraisal.classes[slot])
    measures = prices.measures
    worth = 0.0
    for kind in range(len(measures.cpu)):
        parts = sum(measures.parts[free, kind] for free in cards)
        limits = cpu * measures.cpu[kind], memory * measures.memory[kind], parts * measures.cards[kind]
        worth += int(min(limits) + 1e-9) * prices.per_copy[at, kind] / PRICE
    served = sum(prices.served[at, free] for free in cards)
    beside_cpu, beside_memory = prices.beside[at]
    tight = served * max(beside_cpu / max(cpu, 1), beside_memory / max(memory, 1))
    return float(worth + prices.basis.mixed * served / (1 + tight**16) ** 0.0625)


def plain_score(appraisal: Appraisal, shape: PodShape, slot: int) -> float:
    """The score of one node for one pod, from the books and what was found at the last look."""
    table = appraisal.table
    rows = table.resources.rows
    cpu, memory = (float(table.allocatable[rows[of], slot] - table.used[rows[of], slot]) for of in ("cpu", "memory"))
    cards = [int(free) for free in table.devices.free.core[: len(table.devices._described[slot][0]), slot]]
    ask = ask_of(shape, appraisal.basis.card_memory)
    after = sorted(cards)
    for _ in range(ask.cards):
        fullest = min(free for free in after if free >= ask.percent)
        after.remove(fullest)
        after.append(fullest - ask.percent)
    before = plain_worth(appraisal, slot, cpu, memory, cards)
    loss = before - plain_worth(appraisal, slot, cpu - ask.cpu, memory - ask.memory, after)
    return BEST * HALF / (HALF + max(loss, -HALF / 2))


def crowd(toy: Any, asks: list[tuple[int, int, str]]) -> None:
    """A small cluster of two models on which pods were placed one after the other, and some have ended."""
    toy.checks = False
    for number, (cards, cpu) in enumerate([(2, 64), (4, 48), (8, 96), (8, 96), (1, 16)]):
        add_node(toy, f"n{number}", cards, cpu, "ab"[number % 2])
    for number in range(FIRST_LOOK):
        add_pod(toy, f"first{number}", 20, 1 + number % 3, ["", "a"][number % 2])
    for number, ask in enumerate(asks):
        add_pod(toy, f"p{number}", *ask)
        toy.settle()
        if number % 5 == 4 and toy.where(f"p{number - 2}"):
            toy.finish(f"p{number - 2}")


@given(asks=st.lists(ASKS, min_size=8, max_size=20))
@QUIET
def test_scores_are_those_of_the_plain_sum_whatever_was_kept_from_before(new_toy: Any, asks: Any) -> None:
    toy = new_toy()
    crowd(toy, asks)
    room = toy.core.cluster.room
    for shape in list(room.foresight.census.counts) if room.foresight.version else ():
        view = room.views.of(shape)
        known = room.foresight.appraisal
        found = Appraisal(room.table, Prices(room.foresight.basis), StaticMasks(room.table))
        room.foresight.appraisal = found
        fresh = ShapeView(shape, room.table, Placement.BINPACK, room.foresight).sync()
        room.foresight.appraisal = known
        assert (view.keys == fresh.keys).all()
        places = np.flatnonzero(view.copies)
        for slot, score in zip(places, known.scores(shape, places), strict=True):
            assert score == pytest.approx(plain_score(known, shape, int(slot)), abs=1)


def test_a_full_cluster_does_not_make_the_worth_of_its_nodes_boundless(new_toy: Any) -> None:
    toy = new_toy()
    toy.checks = False
    add_node(toy, "n0", 8, 96, "a")
    for number in range(FIRST_LOOK):
        add_pod(toy, f"p{number}", 50, 1)
    toy.settle()
    foresight = toy.core.cluster.room.foresight
    foresight.renew()
    assert foresight.basis is not None
    assert foresight.basis.mixed <= MIXED * foresight.basis.cards


MOVES = st.one_of(
    ASKS.map(lambda ask: ("pod", *ask)),
    st.tuples(st.just("end"), st.integers(0, 200)),
    st.tuples(
        st.just("node"), st.sampled_from([1, 2, 4, 8]), st.sampled_from([8, 32, 96]), st.sampled_from(["a", "b"])
    ),
    st.tuples(st.just("relabel"), st.integers(0, 4), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("lose"), st.integers(0, 4)),
)


def live(toy: Any, number: int, move: tuple[Any, ...]) -> None:
    """One thing happens in the cluster."""
    match move:
        case "pod", *ask:
            add_pod(toy, f"p{number}", *ask)
        case "node", cards, cpu, model:
            add_node(toy, f"m{number}", cards, cpu, model)
        case "end", at:
            running = [name for name in toy.bound() if toy.pod(name).status["phase"] == "Running"]
            if running:
                toy.finish(running[at % len(running)])
        case "relabel", at, model:
            node = toy.store.get(Key("Node", "", f"n{at}"))
            if node is not None:
                labels = {**node.labels, "model": model}
                toy.fold([toy.store.put(node.changed(metadata={**node.metadata, "labels": labels}))])
        case "lose", at:
            toy.delete(Key("Node", "", f"n{at}"))


def restarted(toy: Any, private: bytes | None) -> None:
    """A new core takes the place of the old one, which left its private state behind."""
    toy.core = SchedulerCore()
    if private:
        toy.core.restore(private)
    order = sorted(toy.store.objects.values(), key=lambda item: (item.key.kind != "Node", item.name[::-1]))
    toy.fold([Event(None, item) for item in order])
    toy.entitle()


@given(
    asks=st.lists(ASKS, min_size=4, max_size=12),
    moves=st.lists(MOVES, min_size=4, max_size=16),
    restarts=st.sets(st.integers(0, 15)),
)
@settings(QUIET, max_examples=8)
def test_a_core_that_was_restarted_decides_like_one_that_went_on(
    new_toy: Any, asks: Any, moves: Any, restarts: Any
) -> None:
    steady, other = new_toy(), new_toy()
    private = None
    for toy in (steady, other):
        crowd(toy, asks)
    private = other.core.remember()
    assert private is not None and steady.core.cluster.room.foresight.basis is not None
    for number, move in enumerate(moves):
        if number in restarts:
            restarted(other, private)
        for toy in (steady, other):
            live(toy, 100 + number, move)
            toy.settle()
        private = other.core.remember() or private
        assert {name: steady.where(name) for name in steady.bound()} == {
            name: other.where(name) for name in other.bound()
        }
        assert steady.core.cluster.room.foresight.basis == other.core.cluster.room.foresight.basis


def test_what_was_learned_is_remembered_only_when_it_is_new(toy: Any) -> None:
    learned(toy, (100, 8, "a"), (47, 2, ""))
    private = toy.core.remember()
    assert private is not None and b"foresight" in private
    add_pod(toy, "new", 47, 2)
    toy.settle()
    assert toy.core.remember() is None
    assert load(private).foresight == json.loads(written(toy.core.cluster.room.foresight.basis))


@pytest.mark.parametrize(
    "data", [None, {}, [], "x", {"pods": 20}, {"prices": [[0, 99, 1]]}, {"rules": []}, {"asks": [[0]]}]
)
def test_a_basis_that_cannot_be_read_is_dropped_and_looked_for_anew(toy: Any, data: Any) -> None:
    learned(toy, (100, 8, "a"), (47, 2, ""))
    foresight = toy.core.cluster.room.foresight
    good = foresight.basis
    assert read(json.loads(written(good))) == good
    broken = {**json.loads(written(good)), **data} if isinstance(data, dict) and data.keys() - {"pods"} else data
    foresight.restore(broken)
    assert foresight.basis is None
    add_pod(toy, "new", 47, 2)
    toy.settle()
    assert foresight.basis is not None


def test_nothing_is_foreseen_before_enough_pods_with_cards_run(new_toy: Any) -> None:
    toy = new_toy()
    add_node(toy, "n", 8, 96, "a")
    add_node(toy, "m", 16, 192, "a")
    for number in range(FIRST_LOOK):
        add_pod(toy, f"p{number}", 100, 4)
        toy.settle()
        assert not toy.core.cluster.room.foresight.version or number == FIRST_LOOK - 1
    add_pod(toy, "last", 100, 4)
    toy.settle()
    assert toy.core.cluster.room.foresight.version > 0


def learned(toy: Any, *asks: tuple[int, int, str]) -> None:
    """Let the scheduler see many such pods on nodes of their own, which are full then."""
    toy.checks = False
    for number in range(12):
        add_node(toy, f"z{number}", 8, 96, "ab"[number % 2])
    for number in range(24):
        for at, ask in enumerate(asks):
            add_pod(toy, f"old{at}-{number:02}", *ask)
            toy.settle()


def test_a_pod_that_fits_any_model_leaves_the_model_that_others_insist_on(new_toy: Any) -> None:
    toy = new_toy()
    learned(toy, (100, 8, "a"), (100, 8, ""))
    add_node(toy, "a-free", 2, 24, "a")
    add_node(toy, "b-free", 2, 24, "b")
    add_pod(toy, "new", 100, 8)
    toy.settle()
    assert toy.pod("new").spec["nodeName"] not in [f"z{number}" for number in range(0, 12, 2)] + ["a-free"]


def test_a_pod_without_cards_goes_where_no_card_needs_the_cpu(new_toy: Any) -> None:
    toy = new_toy()
    learned(toy, (100, 10, ""))
    add_node(toy, "a-tight", 8, 96, "a")
    add_node(toy, "y-rich", 2, 96, "a")
    add_pod(toy, "new", 0, 12)
    toy.settle()
    assert toy.where("new") != "a-tight"


def test_a_card_serves_what_its_rest_can_still_be_used_for(new_toy: Any) -> None:
    toy = new_toy()
    learned(toy, (81, 4, ""))
    known = toy.core.cluster.room.foresight.appraisal
    served = known.prices.served[known.classes[toy.core.cluster.room.table.slots["z0"]]]
    assert served[19] == 0
    assert served[81] == pytest.approx(0.81)
    assert served[100] == served[81]
    assert 0 < PATIENCE < 1
