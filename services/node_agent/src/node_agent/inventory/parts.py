"""The parts of a node."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node: its CPUs as the kernel lists them (``0-15,32``), its memory, the indexes of its GPUs."""

    index: int
    cpus: str
    memory_bytes: int
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. ``numa`` is None where it is not known; ``nvlink`` are the indexes of the GPUs that NVLink connects it to."""

    index: int
    uuid: str
    model: str
    memory_bytes: int
    numa: int | None = None
    nvlink: tuple[int, ...] = ()


def parse_cpu_list(text: str) -> list[int]:
    """``"0-3,8"`` → [0, 1, 2, 3, 8]; raises ValueError when it is none."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def format_cpu_list(cpus: list[int]) -> str:
    """[0, 1, 2, 3, 8] → ``"0-3,8"``."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
