"""Quota in trees of cohorts, against definitions by the sums of what is used."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from queue_manager.domain.cohorts.cohort_tree import PER_MILLE, CohortTree, Node, grow
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, Cohort, QuotaSpec

CPU = ("f", "cpu")
GPU = ("f", "gpu")


def spec(nominal: int, borrowing: int | None = None, lending: int | None = None, weight: int = 1000) -> QuotaSpec:
    found = QuotaSpec((), {CPU: nominal}, {}, {}, weight)
    if borrowing is not None:
        found.borrowing[CPU] = borrowing
    if lending is not None:
        found.lending[CPU] = lending
    return found


def tree_of(
    queues: dict[str, tuple[str, QuotaSpec]], cohorts: dict[str, tuple[str, QuotaSpec]] | None = None
) -> CohortTree:
    return grow(
        {name: ClusterQueue(name, "", cohort, quota) for name, (cohort, quota) in queues.items()},
        {name: Cohort(name, "", parent, quota) for name, (parent, quota) in (cohorts or {}).items()},
    )


def test_a_queue_without_a_cohort_has_its_own_quota_and_borrows_nothing() -> None:
    node = tree_of({"a": ("", spec(4))}).queues["a"]
    node.take(CPU, 6)
    assert node.available(CPU) == -2
    assert not node.borrows(CPU)
    assert node.borrowed(CPU) == 0


def test_borrowing_is_limited_by_what_others_lend_and_by_the_own_limit() -> None:
    tree = tree_of(
        {"lender": ("team", spec(6, lending=2)), "taker": ("team", spec(1)), "shy": ("team", spec(1, borrowing=1))}
    )
    assert tree.queues["taker"].available(CPU) == 4
    assert tree.queues["shy"].available(CPU) == 2
    tree.queues["taker"].take(CPU, 4)
    assert tree.queues["lender"].available(CPU) == 4
    assert tree.queues["shy"].available(CPU) == 0


def test_a_cohort_that_is_only_named_exists_and_one_that_is_its_own_ancestor_is_a_root() -> None:
    tree = tree_of({"a": ("x", spec(1))}, {"x": ("y", spec(2)), "y": ("x", spec(3))})
    assert [node.name for node in tree.queues["a"].path()] == ["a", "x", "y"]
    assert tree.queues["a"].available(CPU) == 6


def test_the_height_of_a_loan_is_that_of_the_lowest_subtree_that_has_it() -> None:
    tree = tree_of({"a": ("low", spec(1)), "b": ("low", spec(1)), "c": ("top", spec(5))}, {"low": ("top", spec(0))})
    heights = [tree.queues["a"].borrow_height(CPU, amount) for amount in (1, 2, 3)]
    assert heights == [0, 1, 2]


def test_the_share_is_that_of_the_resource_of_which_most_is_borrowed() -> None:
    both = QuotaSpec((), {CPU: 2, GPU: 5})
    tree = tree_of({"a": ("all", both), "b": ("all", QuotaSpec((), {CPU: 8, GPU: 5}))})
    node = tree.queues["a"]
    assert node.share({CPU: 3, GPU: 7}) == 200 * PER_MILLE
    node.take(CPU, 3)
    node.take(GPU, 7)
    assert node.share() == 200 * PER_MILLE
    assert tree.queues["b"].share() == 0


def test_the_share_counts_what_the_parent_could_be_lent_of_flavors_that_only_others_have() -> None:
    """Six of 8 + 16 cpus can come to ``low``: those of the flavor ``g`` are further up, and count as well."""
    other = QuotaSpec((), {("g", "cpu"): 16})
    queues = {"a": ("low", spec(2)), "b": ("low", spec(6)), "far": ("top", other)}
    tree = tree_of(queues, {"low": ("top", spec(0))})
    tree.queues["a"].take(CPU, 8)
    assert tree.queues["a"].share() == 250 * PER_MILLE


def test_weight_divides_the_share_and_weight_nothing_is_above_all_others() -> None:
    tree = tree_of({"a": ("all", spec(0, weight=2000)), "b": ("all", spec(0, weight=0)), "c": ("all", spec(10))})
    assert tree.queues["a"].share({CPU: 4}) == 200 * PER_MILLE
    assert tree.queues["b"].share({CPU: 1}) > tree.queues["a"].share({CPU: 10})


NAMES = ("a", "b", "c", "d")
SPECS = st.builds(spec, st.integers(0, 9), st.none() | st.integers(0, 5), st.none() | st.integers(0, 5))


@st.composite
def trees(draw: st.DrawFn) -> CohortTree:
    cohorts = {"x": ("", draw(SPECS)), "y": (draw(st.sampled_from(["", "x"])), draw(SPECS))}
    cohorts["z"] = (draw(st.sampled_from(["", "x", "y"])), draw(SPECS))
    queues = {}
    for name in NAMES:
        cohort, quota = draw(st.sampled_from(["", "x", "y", "z"])), draw(SPECS)
        queues[name] = (cohort, quota if cohort else replace(quota, borrowing={}, lending={}))
    return tree_of(queues, cohorts)


def used_by(node: Node) -> int:
    """What is used at a node, from the leaves: of each child what it does not keep for itself."""
    if node.is_queue:
        return node.usage.get(CPU, 0)
    return sum(max(0, used_by(child) - child.local(CPU)) for child in node.children)


def holds(node: Node) -> bool:
    """Whether nobody from here upwards is above quota and borrowing limit."""
    for each in node.path():
        limit = each.quota.borrowing.get(CPU, 1 << 40) if each.parent is not None else 0
        if used_by(each) > each.subtree.get(CPU, 0) + limit:
            return False
    return True


@given(trees(), st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-6, 6)), max_size=20))
def test_what_is_available_is_what_can_be_taken_before_a_limit_breaks(
    tree: CohortTree, steps: list[tuple[str, int]]
) -> None:
    """Starting from nothing and never beyond what is available; the books agree with the sums after every step."""
    for name, amount in steps:
        node = tree.queues[name]
        if amount < 0:
            node.give(CPU, min(-amount, node.usage.get(CPU, 0)))
        elif amount <= node.available(CPU):
            node.take(CPU, amount)
        for each in [*tree.queues.values(), *tree.cohorts.values()]:
            assert each.usage.get(CPU, 0) == used_by(each)
        most = 0
        while most < 60:
            node.take(CPU, most + 1)
            fits = holds(node)
            node.give(CPU, most + 1)
            if not fits:
                break
            most += 1
        assert node.available(CPU) == most
