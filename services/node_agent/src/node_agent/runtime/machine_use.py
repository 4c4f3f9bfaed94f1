"""What the whole machine uses, by /proc, which shows it in a container too."""

from pathlib import Path

from node_agent.domain.usage import Consumption
from node_agent.runtime.processes import CLOCK_TICK_NS


def machine_use(proc: Path = Path("/proc")) -> Consumption:
    """CPU time since boot (all but idle and waiting for disks) and memory that is in use and cannot be taken back."""
    times = (proc / "stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, *_ = map(int, times)
    fields = dict(line.split(":") for line in (proc / "meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    return Consumption((user + nice + system + irq + softirq) * CLOCK_TICK_NS, total - available)
