"""Where a kubelet puts the control groups of its pods and their containers, by either of its cgroup drivers.

cgroupfs: ``kubepods/burstable/pod<uid>/<container>``
systemd: ``kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<container>.scope``

Pods of the class Guaranteed stand directly in the first folder. A slice's name repeats those above it, and has ``_`` for a
``-`` of a part (``CgroupName.ToSystemd`` and ``ToCgroupfs`` in the kubelet's pkg/kubelet/cm). A static pod's uid is the hash of
its manifest. Versions 1 and 2 of cgroups have the same paths, version 1 once for each controller.
"""

import re
from enum import StrEnum
from pathlib import PurePosixPath

_FIRST = "kubepods"
_CLASSES = ("", "burstable", "besteffort")
_SLICE = ".slice"
_UID = r"([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"
_POD = re.compile(rf"pod{_UID}")
_POD_SLICE = re.compile(rf".+-pod{_UID}\.slice")
_CONTAINER = re.compile(r"(?:(?:cri-containerd|crio|docker)-)?([0-9a-f]{64})(?:\.scope)?")


class Driver(StrEnum):
    """How a kubelet, and its container runtime, name control groups."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"


def class_folders(driver: Driver, root: str = "/") -> tuple[PurePosixPath, ...]:
    """The folders that hold pods, that of Guaranteed first, for a kubelet with ``--cgroup-root`` ``root``. Relative paths."""
    above = [part for part in root.split("/") if part]
    return tuple(_folder(driver, [*above, _FIRST, *([name] if name else [])]) for name in _CLASSES)


def pod_of(driver: Driver, folder: str) -> str:
    """The uid of the pod whose control group has the name ``folder``; empty when it is none of a pod."""
    found = (_POD_SLICE if driver is Driver.SYSTEMD else _POD).fullmatch(folder)
    return found[1].replace("_", "-") if found else ""


def container_of(folder: str) -> str:
    """The id of the container whose control group has the name ``folder``; empty when it is none of a container.

    A pod's sandbox has one too.
    """
    found = _CONTAINER.fullmatch(folder)
    return found[1] if found else ""


def _folder(driver: Driver, parts: list[str]) -> PurePosixPath:
    if driver is Driver.CGROUPFS:
        return PurePosixPath(*parts)
    escaped = [part.replace("-", "_") for part in parts]
    return PurePosixPath(*("-".join(escaped[: depth + 1]) + _SLICE for depth in range(len(escaped))))
