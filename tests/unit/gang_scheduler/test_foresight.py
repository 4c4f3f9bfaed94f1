"""What a placement spoils: the vectors against the plain sum, what was kept against what is computed anew, and where pods go."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.foresight import BEST, FIRST_LOOK, HALF, Foresight
from gang_scheduler.domain.mixture import PATIENCE, ask_of
from gang_scheduler.domain.pod_shape import PodShape
from gang_scheduler.domain.scoring import Placement
from gang_scheduler.domain.shape_view import ShapeView

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


def plain_worth(foresight: Foresight, slot: int, cpu: float, memory: float, cards: list[int]) -> float:
    """The worth of one node, term by term."""
    prices = foresight._prices
    assert prices is not None
    worth = 0.0
    for kind in range(len(prices.cpu)):
        parts = sum(prices.parts[kind, free] for free in cards)
        limits = cpu * prices.cpu[kind, 0], memory * prices.memory[kind, 0], parts * prices.cards[kind, 0]
        worth += int(min(limits) + 1e-9) * prices.per_copy[kind, slot]
    at = int(prices.node_class[slot])
    served = sum(prices.filling.served[at, free] for free in cards)
    tight = served * max(prices.filling.cpu[at] / max(cpu, 1), prices.filling.memory[at] / max(memory, 1))
    return float(worth + prices.per_card * served / (1 + tight**16) ** 0.0625)


def plain_score(foresight: Foresight, shape: PodShape, slot: int) -> float:
    """The score of one node for one pod, from the books alone."""
    table = foresight.table
    rows = table.resources.rows
    cpu, memory = (float(table.allocatable[rows[of], slot] - table.used[rows[of], slot]) for of in ("cpu", "memory"))
    cards = [int(free) for free in table.devices.free.core[: len(table.devices._described[slot][0]), slot]]
    ask = ask_of(shape, foresight._card_memory)
    after = sorted(cards)
    for _ in range(ask.cards):
        fullest = min(free for free in after if free >= ask.percent)
        after.remove(fullest)
        after.append(fullest - ask.percent)
    before = plain_worth(foresight, slot, cpu, memory, cards)
    assert foresight._prices is not None
    loss = (before - plain_worth(foresight, slot, cpu - ask.cpu, memory - ask.memory, after)) * foresight._prices.scale
    return BEST * HALF / (HALF + max(loss, -HALF / 2))


def crowd(toy: Any, asks: list[tuple[int, int, str]]) -> None:
    """A small cluster of two models on which pods were placed one after the other, and some have ended."""
    for number, (cards, cpu) in enumerate([(2, 64), (4, 48), (8, 96), (8, 96), (1, 16)]):
        add_node(toy, f"n{number}", cards, cpu, "ab"[number % 2])
    for number, ask in enumerate(asks):
        add_pod(toy, f"p{number}", *ask)
        toy.settle()
        if number % 5 == 4 and toy.where(f"p{number - 2}"):
            toy.finish(f"p{number - 2}")


@given(asks=st.lists(ASKS, min_size=24, max_size=40))
@QUIET
def test_scores_are_those_of_the_plain_sum_whatever_was_kept_from_before(new_toy: Any, asks: Any) -> None:
    toy = new_toy()
    crowd(toy, asks)
    room = toy.core.cluster.room
    if not room.foresight.version:
        return
    for shape in list(room.foresight.census.counts):
        view = room.views.of(shape)
        fresh = ShapeView(shape, room.table, Placement.BINPACK, room.foresight).sync()
        assert (view.keys == fresh.keys).all()
        places = np.flatnonzero(view.copies)
        for slot, score in zip(places, room.foresight.scores(shape, places), strict=True):
            assert score == pytest.approx(plain_score(room.foresight, shape, int(slot)), abs=1)


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
    prices = toy.core.cluster.room.foresight._prices
    served = prices.filling.served[prices.node_class[0]]
    assert served[19] == 0
    assert served[81] == pytest.approx(0.81)
    assert served[100] == served[81]
    assert 0 < PATIENCE < 1
