"""What the GPUs of this machine are doing, by NVIDIA's management library; nothing where there is none of them.

Source of the form: Koordinator's ``NodeMetric`` (``nodeUsage.devices``).
"""

from typing import Any

import pynvml

from kube import Manifest

CORE, MEMORY, MEMORY_PART = (f"koordinator.sh/gpu-{name}" for name in ("core", "memory", "memory-ratio"))


class GpuUse:
    """Asks the library, which is opened once. A GPU that does not answer is left out until it does."""

    def __init__(self, library: Any = pynvml) -> None:
        self._library = library
        try:
            library.nvmlInit()
            self._count = int(library.nvmlDeviceGetCount())
        except library.NVMLError:
            self._count = 0

    def devices(self) -> list[Manifest]:
        """An entry for each GPU: percent of the time in which it computed, bytes and percent of its memory."""
        found = (self._device(minor) for minor in range(self._count))
        return [device for device in found if device is not None]

    def _device(self, minor: int) -> Manifest | None:
        library = self._library
        try:
            handle = library.nvmlDeviceGetHandleByIndex(minor)
            uuid, memory = library.nvmlDeviceGetUUID(handle), library.nvmlDeviceGetMemoryInfo(handle)
            core = _core(library, handle)
        except library.NVMLError:
            return None
        used = {MEMORY: str(int(memory.used)), MEMORY_PART: str(int(memory.used) * 100 // max(1, int(memory.total)))}
        if core is not None:
            used[CORE] = str(core)
        name = uuid.decode() if isinstance(uuid, bytes) else str(uuid)
        return {"type": "gpu", "minor": minor, "id": name, "resources": used}


def _core(library: Any, handle: Any) -> int | None:
    """None for a GPU that is split (MIG): its parts are not told of."""
    try:
        return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)
    except library.NVMLError:
        return None
