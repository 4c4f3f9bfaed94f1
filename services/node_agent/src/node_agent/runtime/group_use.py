"""What the files of a control group say that it, with all below it, used; None where they are not there (any more).

Memory is without pages of files that were not used lately, as the kubelet counts a working set.
"""

from pathlib import Path


def v1_cpu_ns(folder: Path) -> int | None:
    """By the controller cpuacct of version 1."""
    return _number(folder / "cpuacct.usage")


def v1_memory_bytes(folder: Path) -> int | None:
    """By the controller memory of version 1."""
    return _without(
        _number(folder / "memory.usage_in_bytes"), pairs(folder / "memory.stat").get("total_inactive_file", 0)
    )


def v2_cpu_ns(folder: Path) -> int | None:
    """By version 2, which counts CPU time with or without a controller."""
    used = pairs(folder / "cpu.stat").get("usage_usec")
    return None if used is None else used * 1000


def v2_memory_bytes(folder: Path) -> int | None:
    """By the controller memory of version 2."""
    return _without(_number(folder / "memory.current"), pairs(folder / "memory.stat").get("inactive_file", 0))


def is_idle(folder: Path) -> bool:
    """Whether the group runs only where nobody else wants to: it has no weight then, and none can be set."""
    return _number(folder / "cpu.idle") == 1


def pairs(file: Path) -> dict[str, int]:
    """The lines ``name value`` of a file; none when it cannot be read."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, value in (line.split() for line in lines)}


def _without(used: int | None, inactive: int) -> int | None:
    return None if used is None else max(0, used - inactive)


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except OSError:
        return None
