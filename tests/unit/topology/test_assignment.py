"""How many pods of a set go to which domain: Kueue's examples, and a plain reference on random trees."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.pod_sets import Nearness, PodSetAsk, ask_of
from topology.assignment import Share, Shortfall, lay_out
from topology.levels import Level, LevelTree

KEYS = ("block", "rack", "host")
Path = tuple[str, str, str]
NODES: dict[Path, int] = {
    ("b1", "r1", "x3"): 1,
    ("b1", "r2", "x5"): 1,
    ("b1", "r2", "x1"): 1,
    ("b1", "r2", "x6"): 1,
    ("b2", "r1", "x2"): 1,
    ("b2", "r2", "x4"): 2,
}


def tree_of(nodes: Sequence[Path]) -> LevelTree:
    """The tree of these nodes, in their order."""
    levels = []
    for depth, key in enumerate(KEYS):
        paths = sorted({node[: depth + 1] for node in nodes})
        above = sorted({node[:depth] for node in nodes})
        of_node = np.array([paths.index(node[: depth + 1]) for node in nodes], np.int64)
        parent = np.array([above.index(path[:depth]) for path in paths], np.int64)
        levels.append(Level(key, of_node, parent, tuple(path[-1] for path in paths)))
    return LevelTree(tuple(levels))


def laid(nodes: dict[Path, int], ask: PodSetAsk, count: int) -> dict[str, int] | Shortfall:
    """How many pods go to each node."""
    tree = tree_of(list(nodes))
    found = lay_out(tree, np.array(list(nodes.values()), np.int64), ask, count)
    if isinstance(found, Shortfall):
        return found
    return {tree.levels[-1].names[share.domain]: share.pods for share in found}


def required(level: str) -> PodSetAsk:
    return PodSetAsk(Nearness.REQUIRED, level)


def preferred(level: str) -> PodSetAsk:
    return PodSetAsk(Nearness.PREFERRED, level)


@pytest.mark.parametrize(
    ("ask", "count", "expected"),
    [
        (required("rack"), 3, {"x1": 1, "x5": 1, "x6": 1}),
        (required("rack"), 1, {"x3": 1}),
        (required("rack"), 2, {"x4": 2}),
        (required("block"), 3, {"x2": 1, "x4": 2}),
        (required("block"), 4, {"x1": 1, "x3": 1, "x5": 1, "x6": 1}),
        (required("host"), 2, {"x4": 2}),
        (required("host"), 1, {"x3": 1}),
        (preferred("rack"), 4, {"x1": 1, "x3": 1, "x5": 1, "x6": 1}),
        (preferred("rack"), 5, {"x1": 1, "x4": 2, "x5": 1, "x6": 1}),
        (preferred("host"), 3, {"x1": 1, "x5": 1, "x6": 1}),
        (PodSetAsk(), 1, {"x3": 1}),
        (PodSetAsk(), 2, {"x4": 2}),
    ],
)
def test_a_set_takes_the_smallest_domain_that_holds_it(ask: PodSetAsk, count: int, expected: dict[str, int]) -> None:
    assert laid(NODES, ask, count) == expected


def test_a_slice_lies_in_one_domain_of_its_level() -> None:
    nodes: dict[Path, int] = {("b1", "r1", "a"): 3, ("b1", "r1", "b"): 1, ("b1", "r2", "c"): 2, ("b1", "r2", "d"): 1}
    in_hosts = PodSetAsk(Nearness.REQUIRED, "block", "host", 2)
    assert laid(nodes, in_hosts, 4) == {"a": 2, "c": 2}
    in_racks = PodSetAsk(Nearness.REQUIRED, "block", "rack", 2)
    assert laid(nodes, in_racks, 6) == {"a": 3, "b": 1, "c": 2}
    refused = laid(nodes, in_hosts, 6)
    assert isinstance(refused, Shortfall)
    assert refused.sentence("j") == (
        "no block holds the 3 slices of 2 pods of j: b1, the one with most room, has room for 2"
    )


@pytest.mark.parametrize(
    ("ask", "count", "words"),
    [
        (required("rack"), 4, "no rack holds the 4 pods of j: r2, the one with most room, has room for 3"),
        (preferred("rack"), 8, "all domains of block together have room for 7 of the 8 pods of j"),
        (required("row"), 1, "j cannot be laid out: the topology of its flavor has no level row"),
        (PodSetAsk(Nearness.REQUIRED, "block", "rack", 2), 3, "its 3 pods do not make whole slices of 2"),
    ],
)
def test_what_finds_no_place_is_told_why(ask: PodSetAsk, count: int, words: str) -> None:
    refused = laid(NODES, ask, count)
    assert isinstance(refused, Shortfall)
    assert words in refused.sentence("j")


def test_annotations_that_make_no_sense_ask_for_little() -> None:
    assert ask_of({}) == PodSetAsk()
    assert ask_of({"kueue.x-k8s.io/podset-slice-size": "x"}) == PodSetAsk()
    assert ask_of({"kueue.x-k8s.io/podset-preferred-topology": "rack"}) == preferred("rack")


# --- the plain reference: nested dictionaries, sorted lists, one step after the other --------------------------------


@dataclass
class Plain:
    """One domain: the path of its names, and how many pods fit in it."""

    path: tuple[str, ...]
    pods: int


def domains(nodes: dict[Path, int], depth: int, inside: Sequence[tuple[str, ...]]) -> list[Plain]:
    """The domains of a depth below the domains ``inside``, from the roomiest on, then by name."""
    sums: dict[tuple[str, ...], int] = {}
    for path, pods in nodes.items():
        if any(path[: len(outer)] == outer for outer in inside):
            sums[path[: depth + 1]] = sums.get(path[: depth + 1], 0) + pods
    return sorted((Plain(path, pods) for path, pods in sums.items()), key=lambda item: (-item.pods, item.path))


def take(found: list[Plain], wanted: int) -> list[Plain]:
    taken = []
    while wanted > 0:
        enough = [item for item in found if item.pods >= wanted]
        chosen = min(enough, key=lambda item: item.pods) if enough else found[0]
        taken.append(Plain(chosen.path, min(chosen.pods, wanted)))
        wanted -= taken[-1].pods
        found = [item for item in found if item is not chosen]
    return taken


def plainly(nodes: dict[Path, int], ask: PodSetAsk, count: int) -> dict[str, int] | None:
    depth = KEYS.index(ask.level)
    while True:
        found = domains(nodes, depth, [()])
        if found[0].pods >= count:
            break
        if ask.nearness is Nearness.REQUIRED or (depth == 0 and sum(item.pods for item in found) < count):
            return None
        if depth == 0:
            break
        depth -= 1
    chosen = take(found, count)
    for below in range(depth + 1, len(KEYS)):
        chosen = take(domains(nodes, below, [item.path for item in chosen]), count)
    return {item.path[-1]: item.pods for item in chosen}


PATHS = st.tuples(st.sampled_from(("b1", "b2")), st.sampled_from(("r1", "r2", "r3")), st.integers(0, 40).map(str))
TREES = st.dictionaries(PATHS, st.integers(0, 4), min_size=1, max_size=10)
ASKS = st.tuples(
    st.sampled_from((Nearness.REQUIRED, Nearness.PREFERRED)), st.sampled_from(("block", "rack", "host"))
).map(lambda parts: PodSetAsk(*parts))


@settings(max_examples=300, deadline=None)
@given(TREES, ASKS, st.integers(1, 12))
def test_the_shares_are_those_of_the_plain_rule(nodes: dict[Path, int], ask: PodSetAsk, count: int) -> None:
    named: dict[Path, int] = {
        (block, rack, f"{block}{rack}{host}"): pods for (block, rack, host), pods in nodes.items()
    }
    found = laid(named, ask, count)
    assert (None if isinstance(found, Shortfall) else found) == plainly(named, ask, count)


SLICED = st.tuples(
    st.sampled_from(tuple(Nearness)),
    st.sampled_from(("block", "rack")),
    st.sampled_from(("rack", "host")),
    st.integers(1, 3),
).map(lambda parts: PodSetAsk(*parts))


@settings(max_examples=300, deadline=None)
@given(TREES, SLICED | ASKS, st.integers(1, 4))
def test_what_is_laid_out_fits_is_all_there_and_keeps_to_its_domains(
    nodes: dict[Path, int], ask: PodSetAsk, slices: int
) -> None:
    tree, copies = tree_of(list(nodes)), np.array(list(nodes.values()), np.int64)
    count = slices * ask.slice_size
    shares = lay_out(tree, copies, ask, count)
    if isinstance(shares, Shortfall):
        return
    assert sum(share.pods for share in shares) == count
    paths = sorted(nodes)
    placed = {paths[share.domain]: share.pods for share in shares}
    assert all(0 < pods <= nodes[path] for path, pods in placed.items())
    assert shares == sorted(shares, key=lambda share: share.domain) and all(isinstance(one, Share) for one in shares)
    if ask.nearness is Nearness.REQUIRED:
        assert len({path[: KEYS.index(ask.level) + 1] for path in placed}) == 1
    if ask.slice_level:
        by_domain: dict[tuple[str, ...], int] = {}
        for path, pods in placed.items():
            key = path[: KEYS.index(ask.slice_level) + 1]
            by_domain[key] = by_domain.get(key, 0) + pods
        assert all(pods % ask.slice_size == 0 for pods in by_domain.values())
