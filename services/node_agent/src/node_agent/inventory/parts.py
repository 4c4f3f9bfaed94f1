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
class MigInstance:
    """A part that a GPU is split into: its profile as resources name it (``1g.10gb``), and the driver's name of it."""

    profile: str
    uuid: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. ``numa`` is None where it is not known; ``nvlink`` are the indexes of the GPUs that NVLink connects it to.

    ``mig`` is None for a GPU that is given out as a whole or in shares, else what it is split into.
    """

    index: int
    uuid: str
    model: str
    memory_bytes: int
    numa: int | None = None
    nvlink: tuple[int, ...] = ()
    mig: tuple[MigInstance, ...] | None = None
