"""Means and percentiles of what a node used, over windows that are known well enough."""

import math
import os
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from node_agent.domain.colocation.samples import Use
from node_agent.domain.usage import Consumption
from node_agent.domain.windows import UseHistory, percentile
from node_agent.node_watch import NodeWatch
from node_agent.runtime.machine_use import machine_use


def told(history: UseHistory, now: int) -> dict[str, Any]:
    return {one["duration"]: one["usage"] for one in history.summaries(now)}


def test_a_window_is_told_of_when_samples_tell_of_half_of_it() -> None:
    history = UseHistory()
    for second in range(0, 150, 2):
        history.add(second * 1000, Use(second, 1 << 30))
    assert told(history, 149_000) == {}
    for second in range(150, 320, 2):
        history.add(second * 1000, Use(second, 1 << 30))
    found = told(history, 319_000)
    assert set(found) == {"5m", "10m"}
    assert found["5m"]["avg"]["resources"] == {"cpu": "169m", "memory": "1Gi"}
    assert (found["5m"]["p50"]["resources"]["cpu"], found["5m"]["p99"]["resources"]["cpu"]) == ("168m", "316m")


def test_old_samples_go_and_a_clock_that_goes_back_begins_anew() -> None:
    history = UseHistory()
    for minute in range(100):
        history.add(minute * 60_000, Use(minute, 0))
    assert told(history, 99 * 60_000)["30m"]["p50"]["resources"]["cpu"] == "84m"
    history.add(0, Use(1, 1))
    assert told(history, 0) == {}


@given(st.lists(st.integers(0, 100), min_size=1), st.sampled_from([50, 90, 95, 99]))
def test_a_percentile_is_the_smallest_amount_that_so_many_do_not_exceed(amounts: list[int], percent: int) -> None:
    found = percentile(sorted(amounts), percent)
    needed = math.ceil(len(amounts) * percent / 100)
    assert sum(one <= found for one in amounts) >= needed
    assert sum(one < found for one in amounts) < needed


def test_what_belongs_to_no_pod_is_the_systems() -> None:
    """Never less than nothing, though the two are not read at the same moment."""
    seen = {"machine": Consumption(0, 100), "pods": Consumption(0, 40)}
    watch = NodeWatch(lambda: seen["pods"], lambda: seen["machine"])
    for second in range(0, 400, 2):
        seen["machine"] = Consumption(second * 500_000_000, 100)
        seen["pods"] = Consumption(second * (600_000_000 if second > 398 else 200_000_000), 40)
        watch.look(second * 1000)
    found = watch.told(399_000)
    five = {name: one["usage"] for name in found for one in found[name] if one["duration"] == "5m"}
    assert five["aggregatedNodeUsages"]["avg"]["resources"] == {"cpu": "500m", "memory": "100"}
    assert five["aggregatedSystemUsages"]["p50"]["resources"] == {"cpu": "300m", "memory": "60"}


def test_the_machine_uses_at_least_what_one_process_does() -> None:
    """Measured finer than by the ticks of its clock."""
    before, own = machine_use().cpu_ns, time.process_time_ns()
    while time.process_time_ns() - own < 300_000_000:
        pass
    used, processors = machine_use().cpu_ns - before, os.cpu_count() or 1
    assert used >= 300_000_000 - processors * 20_000_000
