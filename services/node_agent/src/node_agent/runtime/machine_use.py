"""What the whole machine uses, by /proc, which shows it in a container too."""

import time
from pathlib import Path

from node_agent.domain.usage import Consumption
from node_agent.runtime.processes import CLOCK_TICK_NS


def machine_use(proc: Path = Path("/proc")) -> Consumption:
    """CPU time since boot (all but idle, waiting for disks and what the host took) and memory that cannot be taken back.

    The kernel measures how long CPUs are idle, and counts the rest by who runs when its clock ticks: a hundred samples a second
    are a tenth of a core wrong. So what is used is what is not idle.
    """
    lines = (proc / "stat").read_text().split("\n")
    _, _, _, idle, waiting, _, _, stolen, *_ = map(int, lines[0].split()[1:])
    processors = sum(line.startswith("cpu") for line in lines) - 1
    passed = time.clock_gettime_ns(time.CLOCK_MONOTONIC) * processors
    fields = dict(line.split(":") for line in (proc / "meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    return Consumption(passed - (idle + waiting + stolen) * CLOCK_TICK_NS, total - available)
