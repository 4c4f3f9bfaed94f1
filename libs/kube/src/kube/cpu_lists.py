"""Lists of CPUs as the kernel and the kubelet write them: ``0-3,8``."""

from collections.abc import Iterable

MOST_CPUS = 65_536
"""No machine has more."""


def parse_cpus(text: str) -> tuple[int, ...]:
    """``"0-3,8"`` → (0, 1, 2, 3, 8), each once and in order; raises ValueError when it is no such list."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        end = int(last or first)
        if end >= MOST_CPUS:
            raise ValueError(f"CPU {end} is of no machine; they are numbered from 0 to {MOST_CPUS - 1} at most")
        cpus.update(range(int(first), end + 1))
    return tuple(sorted(cpus))


def format_cpus(cpus: Iterable[int]) -> str:
    """(0, 1, 2, 3, 8) → ``"0-3,8"``."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
