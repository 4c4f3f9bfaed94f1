"""GPUs by NVIDIA's management library."""

from pathlib import Path
from typing import Any

import pynvml

from node_agent.inventory.parts import Gpu, MigInstance


def find_gpus(root: Path = Path("/"), library: Any = pynvml) -> tuple[Gpu, ...]:
    """The GPUs of this machine by index; none where there is no driver."""
    try:
        library.nvmlInit()
    except library.NVMLError:
        return ()
    try:
        handles = [library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())]
        addresses = [_address(library, handle) for handle in handles]
        return tuple(_gpu(library, root, index, handle, addresses) for index, handle in enumerate(handles))
    finally:
        library.nvmlShutdown()


def _gpu(library: Any, root: Path, index: int, handle: Any, addresses: list[str]) -> Gpu:
    return Gpu(
        index=index,
        uuid=_text(library.nvmlDeviceGetUUID(handle)),
        model=_text(library.nvmlDeviceGetName(handle)),
        memory_bytes=int(library.nvmlDeviceGetMemoryInfo(handle).total),
        numa=_numa(root, addresses[index]),
        nvlink=tuple(sorted(_peers(library, handle, addresses) - {index})),
        mig=_instances(library, handle),
    )


def _instances(library: Any, handle: Any) -> tuple[MigInstance, ...] | None:
    """What a GPU in MIG mode is split into now; None for one that is not."""
    try:
        if not library.nvmlDeviceGetMigMode(handle)[0]:
            return None
    except library.NVMLError:
        return None  # a model without MIG
    found = []
    for place in range(library.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            instance = library.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
            name, uuid = _text(library.nvmlDeviceGetName(instance)), _text(library.nvmlDeviceGetUUID(instance))
        except library.NVMLError:
            continue  # a place where there is none
        # The name ends in the profile: "NVIDIA H200 MIG 1g.18gb+me". Names of resources have no plus sign.
        found.append(MigInstance(name.rpartition(" ")[2].replace("+", "."), uuid))
    return tuple(found)


def _address(library: Any, handle: Any) -> str:
    """``0000:1b:00.0`` as sysfs writes it; NVML's domain has eight digits."""
    text = _text(library.nvmlDeviceGetPciInfo(handle).busId).lower()
    return text[-12:]


def _numa(root: Path, address: str) -> int | None:
    try:
        node = int((root / "sys/bus/pci/devices" / address / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _peers(library: Any, handle: Any, addresses: list[str]) -> set[int]:
    """The GPUs at the other ends of the active links; GPUs on one NVSwitch reach each other through it."""
    ends: set[str] = set()
    for link in range(getattr(library, "NVML_NVLINK_MAX_LINKS", 18)):
        try:
            if library.nvmlDeviceGetNvLinkState(handle, link):
                ends.add(_text(library.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId).lower()[-12:])
        except library.NVMLError:
            continue  # this card has fewer links, or none
    direct = {index for index, address in enumerate(addresses) if address in ends}
    return set(range(len(addresses))) if ends and not direct else direct


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
