"""How far decisions came: never past one that has no outcome."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cluster_gateway.kubernetes.positions import Positions


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_position_never_passes_a_decision_without_its_outcome(sizes: list[int], order: Random) -> None:
    positions = Positions({"s": 10})
    waiting = {11 + index: size for index, size in enumerate(sizes)}
    for sequence, size in waiting.items():
        assert not positions.seen("s", sequence)
        positions.began("s", sequence, size)
        assert positions.seen("s", sequence)
    left = [sequence for sequence, size in waiting.items() for _ in range(size)]
    order.shuffle(left)
    while left:
        positions.ended("s", left.pop())
        unfinished = [sequence for sequence in waiting if sequence in left]
        assert positions.done["s"] == (min(unfinished) - 1 if unfinished else 10 + len(sizes))
