"""Compiled code, made beside the work while plain code serves: the first use of it delays nothing."""

import threading

from gang_scheduler.domain.columns.compiled import Compiled


class BackgroundKernels:
    """Gives the kernel once it is there. The first who asks for it has it made; numba is imported no earlier."""

    def __init__(self) -> None:
        self._found: Compiled | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> Compiled | None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._make, name="kernels", daemon=True)
            self._thread.start()
        return self._found

    def join(self) -> None:
        """Wait until it is there."""
        self()
        if self._thread is not None:
            self._thread.join()

    def _make(self) -> None:
        from gang_scheduler.domain.room import shape_kernel
        from gang_scheduler.domain.score import look_kernel

        self._found = Compiled(shape_kernel.ready(), *look_kernel.ready())
