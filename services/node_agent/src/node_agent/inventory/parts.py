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
