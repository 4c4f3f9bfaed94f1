"""Protected memory, pinned CPUs, disks, caches, who disturbs whom, and the decision as a whole."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.node_agent.colocation.conftest import Desk, machine, pod

from node_agent.domain.colocation import archive
from node_agent.domain.colocation.core import enforce
from node_agent.domain.colocation.groups import Group, Tier, TwoOwners, joined
from node_agent.domain.colocation.machine import CacheHardware, Processor, machine_of
from node_agent.domain.colocation.memory_protection import watermarks
from node_agent.domain.colocation.node_slo import NO_RULES, Qos, node_slo
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.resctrl import cache_mask
from node_agent.domain.colocation.restoration import at_first, to_write
from node_agent.domain.colocation.samples import Stall
from node_agent.domain.colocation.situation import Situation

GIB = 1 << 30
BEST_EFFORT = Group(Tier.BEST_EFFORT)


def group(name: str, tier: Tier = Tier.BURSTABLE, container: str = "") -> Group:
    return Group(tier, name, container)


def memory(**rules: Any) -> dict[str, Any]:
    return {"resourceQOSStrategy": {"lsClass": {"memoryQOS": {"enable": True, **rules}}}}


def test_memory_is_protected_for_containers_pods_and_tiers() -> None:
    """A pod has the sum of its containers, a tier that of its pods; one container without a limit leaves the pod unthrottled."""
    both = [
        {"name": "a", "resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}},
        {"name": "b", "resources": {"requests": {"memory": "2Gi"}}},
    ]
    slo = memory(minLimitPercent=10, lowLimitPercent=50, throttlingPercent=50)
    found = Desk(machine(memory="64Gi"), slo, pod("web", "LS", 9500, containers=both)).round().knobs
    assert found[group("web", container="a")]["memory.high"] == str(3 * GIB // 2)
    assert found[group("web", container="b")]["memory.high"] == str(33 * GIB)
    assert found[group("web")]["memory.min"] == str(GIB // 10 + 2 * GIB // 10)
    assert found[group("web")]["memory.high"] == str(69 * GIB // 2)
    for tier in (Tier.BURSTABLE, Tier.GUARANTEED):
        assert found[Group(tier)]["memory.low"] == str(3 * GIB // 2)


@pytest.mark.parametrize(("word", "low"), [("none", None), ("auto", 4 * GIB), ("default", 2 * GIB)])
def test_a_pod_says_itself_how_its_memory_is_protected(word: str, low: int | None) -> None:
    own = {"annotations": {"koordinator.sh/memoryQOS": json.dumps({"policy": word})}}
    slo = memory(lowLimitPercent=50) if word != "auto" else {}
    found = Desk(machine(), slo, pod("web", "LS", 9500, requests={"memory": "4Gi"}, metadata=own)).round().knobs
    assert found.get(group("web"), {}).get("memory.low") == (None if low is None else str(low))


def test_memory_is_taken_back_before_a_container_meets_its_limit() -> None:
    """Of its own limit or of ``memory.high``, whichever is lower; never where there is none."""
    slo = node_slo(memory(wmarkRatio=90, wmarkScalePermill=50, throttlingPercent=0))
    limited = pod("web", "LS", 9500, requests={"memory": "1Gi"}, limits={"memory": "2Gi"})
    free = pod("free", "LS", 9500, requests={"memory": "1Gi"})
    found = watermarks(slo, machine(), (limited, free, pod("hog", "BE", 5000, limits={"memory": "1Gi"})))
    assert found == {group("web", container="main"): (2 * GIB * 90 // 100, 2 * GIB * 50 // 1000)}
    throttled = node_slo(memory(throttlingPercent=50))
    assert (
        watermarks(throttled, machine(), (limited,))[group("web", container="main")].at_bytes
        == 3 * GIB // 2 * 95 // 100
    )
    assert (
        watermarks(node_slo(memory(wmarkRatio=0)), machine(), (limited,))
        == watermarks(NO_RULES, machine(), (limited,))
        == {}
    )


def test_pods_of_the_system_leave_the_node_what_it_keeps() -> None:
    one = machine(10, memory="100Gi", allocatable={"cpu": "9", "memory": "90Gi"})
    free, own = pod("free", "SYSTEM"), pod("own", "SYSTEM", limits={"cpu": "1", "memory": "1Gi"})
    found = Desk(one, {}, free, own).round().knobs
    assert found[group("free", Tier.BEST_EFFORT)] == {"cpu.max": "900000 100000", "memory.high": str(90 * GIB)}
    assert group("own", Tier.GUARANTEED) not in found


def test_pods_run_on_the_cpus_that_are_theirs_to_share() -> None:
    """Of the NUMA nodes that the scheduler chose, of the system, or of all that nobody has for himself."""
    status = {"annotations": {"scheduling.koordinator.sh/resource-status": '{"numaNodeResources": [{"node": 1}]}'}}
    pinned = {"annotations": {"scheduling.koordinator.sh/resource-status": '{"cpuset": "2,6"}'}}
    node = {
        "metadata": {
            "annotations": {
                "node.koordinator.sh/reservation": '{"reservedCPUs": "0"}',
                "node.koordinator.sh/system-qos-resource": '{"cpuset": "1"}',
            }
        }
    }
    processors = tuple(Processor(cpu, cpu, cpu // 4) for cpu in range(8))
    found = Desk(
        machine(8, node=node, processors=processors), {},
        pod("near", "LS", 9500, requests={"cpu": "1"}, metadata=status),
        pod("any", "LS", 9500, requests={"cpu": "1"}),
        pod("daemon", "SYSTEM", 9500, requests={"cpu": "1"}),
        pod("own", "LSR", 9500, requests={"cpu": "2"}, metadata=pinned),
        pod("hog", "BE", 5000),
    ).round().knobs  # fmt: skip
    sets = {key.pod or key.tier.value: files["cpuset.cpus"] for key, files in found.items() if not key.container}
    assert sets == {"near": "4-5,7", "any": "3-5,7", "daemon": "1", "own": "2,6", "besteffort": "2-7"}


def test_disks_are_limited_by_number_for_best_effort_and_for_pods_that_say_so() -> None:
    block = {"name": "vda", "type": "device", "ioCfg": {"readBPS": 1000, "writeIOPS": 5, "ioWeightPercent": 50}}
    slo = {"resourceQOSStrategy": {"beClass": {"blkioQOS": {"enable": True, "blocks": [block, {"name": "nowhere"}]}}}}
    own = {
        "annotations": {
            "koordinator.sh/blkioQOS": json.dumps({"blocks": [{"name": "/dev/vda", "ioCfg": {"writeBPS": 7}}]})
        }
    }
    one = Desk(machine(disks={"vda": "254:0"}), slo, pod("web", "LS", 9500, requests={"cpu": "1"}, metadata=own))
    found = one.round().knobs
    assert found[BEST_EFFORT] == {
        "io.max": "254:0 rbps=1000 wbps=max riops=max wiops=5",
        "io.weight": "default 100\n254:0 50",
    }
    assert found[group("web")] == {"io.max": "254:0 rbps=max wbps=7 riops=max wiops=max"}
    restored = to_write({}, found, one.pods, one.machine)
    assert restored[BEST_EFFORT]["io.max"] == "254:0 rbps=max wbps=max riops=max wiops=max"


def test_classes_that_run_only_where_nobody_else_wants_to() -> None:
    slo = {
        "resourceQOSStrategy": {
            "beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}},
            "lsClass": {"cpuQOS": {"enable": True}},
        }
    }
    found = Desk(machine(), slo, pod("web", "LS", 9500, requests={"cpu": "1"}), pod("hog", "BE", 5000)).round().knobs
    assert found == {BEST_EFFORT: {"cpu.idle": "1"}}


def test_caches_are_shared_out_in_runs_of_ways() -> None:
    hardware = CacheHardware(0xFFF, (0, 1), True)
    slo = {
        "resourceQOSStrategy": {"beClass": {"resctrlQOS": {"enable": True, "catRangeEndPercent": 30, "mbaPercent": 25}}}
    }
    pods = (pod("pin", "LSE", 9500), pod("web", "LS", 9500), pod("hog", "BE", 5000))
    found = Desk(machine(cache=hardware), slo, *pods).round().caches
    assert found.lines == {
        "LSR": ("L3:0=fff;1=fff", "MB:0=100;1=100"),
        "LS": ("L3:0=fff;1=fff", "MB:0=100;1=100"),
        "BE": ("L3:0=f;1=f", "MB:0=30;1=30"),
    }
    assert found.members == {"LSR": ("pin",), "LS": ("web",), "BE": ("hog",)}
    assert Desk(machine(), slo, *pods).round().caches.lines == {}


@given(st.integers(1, 20), st.integers(0, 100), st.integers(0, 100))
def test_a_part_of_the_cache_is_one_run_of_ways_and_never_none(ways: int, start: int, end: int) -> None:
    mask = cache_mask((1 << ways) - 1, start, end)
    assert 0 < mask < 1 << ways
    assert "01" not in bin(mask)[2:].rstrip("0")


def test_no_file_has_two_owners() -> None:
    with pytest.raises(TwoOwners, match=r"cpu\.max"):
        joined(({BEST_EFFORT: {"cpu.max": "1"}}, {BEST_EFFORT: {"cpu.max": "1"}}))


SWITCH = st.booleans()
PODS = st.lists(
    st.tuples(
        st.sampled_from(["LSE", "LSR", "LS", "BE", "SYSTEM", ""]),
        st.sampled_from([0, 5000, 7000, 9500]),
        st.sampled_from([{}, {"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}, {"kubernetes.io/batch-cpu": "500"}]),
        st.sampled_from(["", "0-1", "2", "nonsense"]),
        st.integers(0, 3000),
        SWITCH,
    ),
    max_size=6,
)


def _slo(draw: Any) -> dict[str, Any]:
    qos = {
        "cpuQOS": {"enable": draw(SWITCH)},
        "memoryQOS": {"enable": draw(SWITCH), "throttlingPercent": 80, "lowLimitPercent": 50},
    }
    return {
        "resourceUsedThresholdWithBE": {
            "enable": draw(SWITCH),
            "cpuSuppressPolicy": draw(st.sampled_from(["cpuset", "cfsQuota", "weight", "?"])),
            "cpuEvictThresholdPercent": 50,
            "evictEnabledPriorityThreshold": 7999,
        },
        "cpuBurstStrategy": {
            "policy": draw(st.sampled_from(["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto", None]))
        },
        "resourceQOSStrategy": dict.fromkeys(("lsClass", "beClass", "systemClass", "lsrClass"), qos),
    }


def _pod(number: int, drawn: tuple[Any, ...]) -> NodePod:
    qos, priority, amounts, cpus, _, _ = drawn
    own = {"annotations": {"scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": cpus})}} if cpus else {}
    return pod(f"p{number}", qos, priority, requests=amounts, limits=amounts, metadata=own)


@settings(max_examples=150)
@given(st.data())
def test_the_same_of_everything_is_the_same_decision_and_a_second_one_changes_nothing(data: st.DataObject) -> None:
    """Whatever the rules and pods, in whatever order they are seen; and what is kept in a file comes back as it was."""
    slo, drawn = _slo(data.draw), data.draw(PODS)
    pods = [_pod(number, one) for number, one in enumerate(drawn)]
    one, other = Desk(machine(4), slo, *pods), Desk(machine(4), slo, *reversed(pods))
    used = {item.uid: amounts[4] for item, amounts in zip(pods, drawn, strict=True)}
    met = tuple(item.uid for item, amounts in zip(pods, drawn, strict=True) if amounts[5])
    for desk in (one, other):
        desk.uses(**used).stalls(met, **{item.uid: Stall(cpu=200) for item in pods})
    for _ in range(3):
        assert one.round() == other.round()
    again = enforce(Situation(one.now, one.slo, one.machine, one.pods, None, 0), one.kept)
    twice = enforce(Situation(one.now, one.slo, one.machine, one.pods, None, 0), again.kept)
    assert again.knobs == twice.knobs
    written = to_write(again.knobs, {}, one.pods, one.machine)
    kept, told = archive.decode(json.loads(json.dumps(archive.encode(again.kept, written))))
    assert (kept.held, kept.raised, kept.asked, told) == (again.kept.held, again.kept.raised, again.kept.asked, written)


def test_what_nobody_decides_any_more_goes_back_to_what_the_pod_asked_for() -> None:
    one = Desk(machine(), {}, pod("web", "LS", 9500, requests={"cpu": "1"}, limits={"cpu": "2"}))
    before = {
        group("web"): {"cpu.max": "400000 100000", "memory.low": "5", "cpuset.cpus": "0-1", "cpu.max.burst": "9"},
        group("gone"): {"cpu.max": "1 100000"},
        BEST_EFFORT: {"cpu.max": "2000 100000", "cpu.idle": "1"},
    }
    assert to_write({group("web"): {"memory.low": "7"}}, before, one.pods, one.machine) == {
        group("web"): {"memory.low": "7", "cpu.max": "200000 100000", "cpuset.cpus": "0-19", "cpu.max.burst": "0"},
        BEST_EFFORT: {"cpu.idle": "0", "cpu.weight": "1", "cpu.shares": "2", "cpu.max": "max 100000"},
    }


def test_a_group_that_was_idle_gets_its_weight_back_after_that() -> None:
    """The kernel forgets the weight of a group that becomes idle, and refuses one while it is."""
    slo = {"resourceQOSStrategy": {"lsClass": {"cpuQOS": {"enable": True, "schedIdle": 1}}}}
    one = Desk(machine(), slo, pod("web", "LS", 7000, requests={"kubernetes.io/mid-cpu": "2000"}))
    idle = to_write(one.round().knobs, {}, one.pods, one.machine)
    assert "cpu.weight" not in idle[group("web", Tier.BEST_EFFORT)]
    back = to_write({}, idle, one.pods, one.machine)[group("web", Tier.BEST_EFFORT)]
    assert list(back)[:3] == ["cpu.idle", "cpu.weight", "cpu.shares"] and back["cpu.shares"] == "2048"


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceUsedThresholdWithBE": None, "resourceQOSStrategy": "no"},
        {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": "many"}},
        {"resourceQOSStrategy": {"beClass": None}, "hostApplications": [None, {"name": "x"}]},
    ],
)
def test_rules_that_are_partly_nonsense_hold_as_far_as_they_make_sense(spec: dict[str, Any]) -> None:
    found = node_slo(spec)
    assert found.thresholds.suppress_percent == 65 and found.of(Qos.BE) == NO_RULES.of(Qos.BE)


def test_a_machine_is_read_from_what_describes_it() -> None:
    detail = [{"id": 1, "core": 0, "node": 0}, {"id": 0, "core": 0, "node": 0}]
    told = {"node.koordinator.sh/cpu-topology": json.dumps({"detail": detail})}
    found = machine_of(
        {"metadata": {"annotations": told}, "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1500m"}}}
    )
    assert found.processors == (Processor(0, 0, 0), Processor(1, 0, 0)) and found.reserved["cpu"] == 500
    assert machine_of({}).processors == ()


def test_a_tier_has_the_weight_that_a_kubelet_gives_it() -> None:
    pods = {
        one.uid: one
        for one in (pod("a", "LS", requests={"cpu": "1"}), pod("b", "LS", requests={"cpu": "3"}), pod("c", "BE"))
    }
    weights = {
        tier: at_first(Group(tier), "cpu.weight", "", pods, machine()) for tier in (Tier.BURSTABLE, Tier.BEST_EFFORT)
    }
    assert weights == {Tier.BURSTABLE: "157", Tier.BEST_EFFORT: "1"}
