"""Compiled code, which does what vectors or plain loops are slow at, with the same results to the last bit."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gang_scheduler.domain.columns.vectors import Ints

Renew = Callable[..., tuple[int, int]]
"""``shape_kernel.renew``."""

Serve = Callable[[Ints, npt.NDArray[np.float64]], npt.NDArray[np.float64]]
"""``look_kernel.served_of``."""

Copies = Callable[..., npt.NDArray[np.float64]]
"""``look_kernel.copies``."""


class Compiled(NamedTuple):
    """All of it."""

    renew: Renew
    serve: Serve
    copies: Copies


Kernels = Callable[[], Compiled | None]
"""Gives compiled code, None as long as there is none: then other code does the same."""


def no_kernel() -> None:
    """Nothing is compiled."""
