"""Plans of what fits where, against the search through all flavors."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from queue_manager.domain.cohorts.cohort_tree import grow
from queue_manager.domain.cohorts.fit_plan import FitPlans
from queue_manager.domain.cohorts.flavor_choice import Mode, Supplier, choose
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, Flavor, QuotaSpec, ResourceGroup
from queue_manager.domain.workloads.work_parts import WorkPart
from queue_manager.domain.workloads.workload import Constraints, Shape

FLAVORS = {
    "tainted": Flavor("tainted", taints=({"key": "gpu", "effect": "NoSchedule"},)),
    "plain": Flavor("plain"),
    "other": Flavor("other", {"zone": "a"}),
}
small = st.integers(0, 6)


@given(st.data())
def test_a_plan_finds_what_the_search_finds_or_says_nothing(data: st.DataObject) -> None:
    names = data.draw(st.permutations(sorted(FLAVORS)))
    resources = data.draw(st.sampled_from([("cpu",), ("cpu", "memory"), ("cpu", "memory", "pods")]))
    split = data.draw(st.booleans()) and len(resources) > 1
    groups = (
        (ResourceGroup(resources[:1], tuple(names)), ResourceGroup(resources[1:], tuple(names)))
        if split
        else (ResourceGroup(resources, tuple(names)),)
    )
    places = [(flavor, name) for flavor in names for name in resources]
    limits = {place: data.draw(small) for place in places if data.draw(st.booleans())}
    quota = QuotaSpec(groups, {place: data.draw(small) for place in places}, limits, covered=frozenset(resources))
    queue = ClusterQueue("a", "", "team", quota, borrow_first=data.draw(st.booleans()), reclaim="Any")
    rich = replace(
        queue, name="b", quota=replace(quota, lending={place: 1 for place in places if data.draw(st.booleans())})
    )
    node = grow({"a": queue, "b": rich}, {}).queues["a"]
    for place in places:
        node.take(place, data.draw(small))
    amounts = tuple((name, data.draw(st.integers(1, 4))) for name in ("cpu", "memory"))
    requests = (*amounts[: data.draw(st.integers(1, 2))], ("pods", 1))
    sets = (WorkPart("main", 1, 1, requests),) if data.draw(st.booleans()) else ()
    shape = Shape(0, requests, Constraints(), sets=sets)

    plan = FitPlans().of(shape, queue, FLAVORS)
    quick = plan.verdict(node) if plan is not None else None
    plain = choose(shape, Supplier(queue, node, FLAVORS))

    if quick is not None and plan is not None:
        assert quick == plain
        assert list(quick.flavors.items()) == list(plain.flavors.items())
        assert plan.usage == plain.usage(shape)
    elif plain.mode is Mode.FIT:
        # Left to the search: a later flavor was taken, or one that borrows though that does not end the search.
        firsts = ["plain" if names.index("plain") < names.index("other") else "other"]
        assert any(flavor not in firsts for flavor in plain.flavors.values()) or (
            plain.height and not queue.borrow_first
        )
