"""The formulas of batch and mid resources, held against the plain words of them, and what holds for any numbers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import Key, from_manifest
from slo_controller.domain.configuration.parts import COLOCATION
from slo_controller.domain.configuration.strategy import Strategy
from slo_controller.domain.lending.computing import compute
from slo_controller.domain.lending.measured import Measured, measured
from slo_controller.domain.lending.reserved import reserved
from slo_controller.domain.lending.rule import rule_on
from slo_controller.domain.lending.tenants import Tenant
from slo_controller.domain.lending.terms import NOTHING, Use

POLICIES = ("usage", "request", "maxUsageRequest")
AMOUNTS = st.integers(0, 200_000)
USES = st.builds(Use, AMOUNTS, AMOUNTS)


def node(cpu: int = 100_000, memory: int = 100_000, **metadata: Any) -> Any:
    amounts = {"cpu": f"{cpu}m", "memory": str(memory)}
    status = {"capacity": amounts, "allocatable": {**amounts, **metadata.pop("allocatable", {})}}
    return from_manifest({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", **metadata}, "status": status})


def rule(**given: Any) -> Any:
    return rule_on(node(), Strategy({**COLOCATION, "enable": True, **given}))


def tenant(name: str, request: Use, band: str = "prod", qos: str = "LS") -> Tenant:
    return Tenant(Key("Pod", "default", name), band, qos, request)


TENANTS = st.lists(
    st.tuples(
        USES, st.none() | USES, st.sampled_from(("prod", "mid", "batch", "free")), st.sampled_from(("LS", "LSE"))
    ),
    max_size=6,
)
RULES = st.builds(
    rule,
    cpuReclaimThresholdPercent=st.integers(0, 150),
    memoryReclaimThresholdPercent=st.integers(0, 150),
    cpuCalculatePolicy=st.sampled_from(("usage", "maxUsageRequest")),
    memoryCalculatePolicy=st.sampled_from(POLICIES),
    batchCPUThresholdPercent=st.none() | st.integers(0, 100),
    midUnallocatedPercent=st.integers(0, 100),
    midCPUThresholdPercent=st.integers(0, 100),
)


def parts(listed: list[Any]) -> tuple[list[Tenant], dict[Key, Use]]:
    """Tenants and their samples."""
    tenants = [tenant(f"p{at}", request, band, qos) for at, (request, _, band, qos) in enumerate(listed)]
    used = {one.key: sample for one, (_, sample, _, _) in zip(tenants, listed, strict=True) if sample is not None}
    return tenants, used


def plain_batch(name: str, rule: Any, capacity: int, system: int, kept: int, listed: list[Any]) -> int:
    """The formula in the words of its documentation."""
    online = 0
    policy = rule.of(name).policy
    for request, sample, band, qos in listed:
        if band in ("batch", "free"):
            continue
        asked = request.of(name)
        used = asked if sample is None else sample.of(name)
        if policy == "usage":
            online += asked if qos == "LSE" and name == "cpu" else used
        elif policy == "request":
            online += asked
        else:
            online += max(asked, used)
    margin = int(capacity * (100 - rule.of(name).threshold) / 100)
    taken = kept if policy == "request" else max(system, kept)
    found = capacity - margin - taken - online
    cap = rule.of(name).batch_cap
    return max(found if cap is None else min(found, capacity * cap // 100), 0)


@given(RULES, USES, USES, TENANTS)
def test_batch_is_what_the_formula_says_in_plain_words(rule: Any, system: Use, kept: Use, listed: list[Any]) -> None:
    tenants, used = parts(listed)
    reservation = f'{{"resources": {{"cpu": "{kept.cpu}m", "memory": "{kept.memory}"}}}}'
    item = node(annotations={"node.koordinator.sh/reservation": reservation})
    found = compute(item, rule, Measured(0, NOTHING, system, used), tenants, NOTHING).amounts
    for name in ("cpu", "memory"):
        wanted = plain_batch(name, rule, 100_000, system.of(name), kept.of(name), listed)
        assert found[f"kubernetes.io/batch-{name}"] == wanted


@given(RULES, USES, USES, TENANTS, st.randoms())
def test_nothing_is_below_zero_and_no_order_matters(
    rule: Any, system: Use, spare: Use, listed: list[Any], chance
) -> None:
    tenants, used = parts(listed)
    seen = Measured(0, NOTHING, system, used)
    found = compute(node(), rule, seen, tenants, spare)
    chance.shuffle(tenants)
    assert compute(node(), rule, seen, tenants, spare) == found
    assert min(found.amounts.values()) >= 0


@given(RULES, USES, TENANTS, st.integers(0, 5), USES)
def test_who_uses_more_never_makes_more_to_lend(rule: Any, system: Use, listed: list[Any], at: int, more: Use) -> None:
    tenants, used = parts(listed)
    before = compute(node(), rule, Measured(0, NOTHING, system, used), tenants, NOTHING).amounts
    if at < len(tenants) and tenants[at].key in used:
        used = {**used, tenants[at].key: used[tenants[at].key] + more}
    else:
        system += more
    after = compute(node(), rule, Measured(0, NOTHING, system, used), tenants, NOTHING).amounts
    assert all(after[name] <= before[name] for name in before)


@given(RULES, USES, TENANTS)
def test_the_terms_come_to_the_amount_where_nothing_else_is_said(rule: Any, system: Use, listed: list[Any]) -> None:
    tenants, used = parts(listed)
    for one in compute(node(), rule, Measured(0, NOTHING, system, used), tenants, NOTHING).lent:
        capped = any("no more" in note or "less than nothing" in note for note in one.notes)
        assert capped or sum(term.amount for term in one.terms) == one.amount


def lent(item: Any = None, use: Use = NOTHING, **given: Any) -> dict[str, int]:
    """What an idle node lends."""
    item = item or node()
    whole = {**COLOCATION, "enable": True, **given}
    found = compute(item, rule_on(item, Strategy(whole)), Measured(0, NOTHING, use), [], NOTHING).amounts
    return {name.partition("/")[2]: amount for name, amount in found.items()}


def test_what_a_node_says_wins_over_the_configuration_and_its_labels_over_that() -> None:
    own = '{"cpuReclaimThresholdPercent": 70, "memoryReclaimThresholdPercent": 70}'
    annotations = {"node.koordinator.sh/colocation-strategy": own}
    labels = {"node.koordinator.sh/cpu-reclaim-ratio": "0.75"}
    found = lent(node(annotations=annotations, labels=labels), cpuReclaimThresholdPercent=20)
    assert (found["batch-cpu"], found["batch-memory"]) == (75_000, 70_000)


def test_the_label_of_a_node_opts_it_in_and_out() -> None:
    opted = [
        rule_on(node(labels={"koordinator.sh/colocation": word}), Strategy({**COLOCATION, "enable": enable})).enabled
        for word, enable in (("true", False), ("false", True), ("maybe", True))
    ]
    assert opted == [True, False, True]


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"node.koordinator.sh/colocation-strategy": '{"cpuReclaimThresholdPercent": "x"}'}},
        {"annotations": {"node.koordinator.sh/colocation-strategy": "["}},
        {"labels": {"node.koordinator.sh/cpu-reclaim-ratio": "much"}},
        {"annotations": {"node.koordinator.sh/reservation": '{"resources": {"cpu": "x"}}'}},
        {"annotations": {"node.koordinator.sh/reservation": "7"}},
        {"annotations": {"node.koordinator.sh/thirdPartyAllocations": '{"allocations": [7]}'}},
    ],
)
def test_what_makes_no_sense_on_a_node_does_not_count_and_is_said(metadata: dict[str, Any]) -> None:
    item = node(**metadata)
    own = rule_on(item, Strategy({**COLOCATION, "enable": True}))
    found = compute(item, own, Measured(0, NOTHING, NOTHING), [], NOTHING)
    assert found.amounts["kubernetes.io/batch-cpu"] == 60_000
    assert len(found.complaints) == 1 and "does not count" in found.complaints[0]


def test_a_list_of_cpus_counts_in_the_place_of_an_amount() -> None:
    annotations = {"node.koordinator.sh/reservation": '{"resources": {"cpu": "50"}, "reservedCPUs": "0-3"}'}
    assert reserved(node(annotations=annotations)).kept.cpu == 4_000


def test_the_kubelet_keeps_what_it_does_not_give_also_where_cpu_is_amplified() -> None:
    item = node(allocatable={"cpu": "180"}, annotations={"node.koordinator.sh/raw-allocatable": '{"cpu": "90"}'})
    assert reserved(item).kept.cpu == 10_000


def test_what_others_were_given_is_taken_off_and_told_before() -> None:
    given = (
        '{"allocations": [{"name": "yarn", "priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "70000"}},'
        ' {"name": "x", "priority": "koord-prod", "resources": {"kubernetes.io/batch-memory": "5"}}]}'
    )
    item = node(annotations={"node.koordinator.sh/thirdPartyAllocations": given})
    found = compute(item, rule(), Measured(0, NOTHING, NOTHING), [], NOTHING)
    assert found.amounts["kubernetes.io/batch-cpu"] == 0 and found.amounts["kubernetes.io/batch-memory"] == 65_000
    assert found.before == {"kubernetes.io/batch-cpu": 60_000, "kubernetes.io/batch-memory": 65_000}


def test_cores_of_a_better_cpu_count_for_more() -> None:
    assert lent(node(annotations={"node.koordinator.sh/cpu-normalization-ratio": "1.50"}))["batch-cpu"] == 90_000
    assert lent(node(annotations={"node.koordinator.sh/cpu-normalization-ratio": "0.50"}))["batch-cpu"] == 60_000


def test_mid_is_what_prod_pods_leave_within_what_is_unused_and_its_cap() -> None:
    parts = {"applications": Use(1_000, 1_000), "reclaimable": Use(20_000, 20_000)}
    seen = Measured(0, Use(95_000, 10_000), Use(4_000, 4_000), **parts)
    pods = [tenant("p", Use(40_000, 40_000))]
    found = compute(node(), rule(midUnallocatedPercent=10), seen, pods, Use(99_000, 99_000)).amounts
    assert found["kubernetes.io/mid-cpu"] == 5_000 + (100_000 - 5_000 - 40_000) // 10
    assert found["kubernetes.io/mid-memory"] == 20_000 + 5_500
    capped = compute(node(), rule(midMemoryThresholdPercent=10), seen, pods, NOTHING).amounts
    assert capped["kubernetes.io/mid-memory"] == 10_000


def test_mid_rests_on_our_own_prediction_where_nobody_else_makes_one() -> None:
    seen = Measured(0, NOTHING, NOTHING)
    assert compute(node(), rule(), seen, [], Use(7_000, 0)).amounts["kubernetes.io/mid-cpu"] == 7_000


def test_a_sample_without_the_system_leaves_it_what_pods_do_not_use() -> None:
    resources = {"cpu": "30", "memory": "30"}
    pods = [{"namespace": "default", "name": "p", "podUsage": {"resources": {"cpu": "10", "memory": "40"}}}]
    status = {
        "updateTime": "2026-01-01T00:00:00Z",
        "nodeMetric": {"nodeUsage": {"resources": resources}},
        "podsMetric": pods,
    }
    api = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n"}}
    found = measured(from_manifest({**api, "status": status}))
    assert found is not None and found.system == Use(20_000, 0)
    assert measured(from_manifest({**api, "status": {"updateTime": "soon"}})) is None
    programs = [
        {"name": "proxy", "priority": "koord-prod", "usage": {"resources": {"cpu": "3"}}},
        {"name": "hadoop", "priority": "koord-batch", "usage": {"resources": {"cpu": "5"}}},
    ]
    found = measured(from_manifest({**api, "status": {**status, "hostApplicationMetric": programs}}))
    assert found is not None and (found.system.cpu, found.applications.cpu) == (12_000, 3_000)
