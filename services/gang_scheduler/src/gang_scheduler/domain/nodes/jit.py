"""How kernels are compiled. Only kernels import it: numba takes long to come."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

_F = TypeVar("_F", bound=Callable[..., object])


def jit(fastmath: set[str] | None = None) -> Callable[[_F], _F]:
    """Compile a function, with the compiled code kept for the next process where there is a place for it."""

    def compiled(function: _F) -> _F:
        try:
            found = njit(cache=True, error_model="numpy", fastmath=fastmath or False)(function)
        except RuntimeError:  # there is no place to keep it
            found = njit(error_model="numpy", fastmath=fastmath or False)(function)
        return cast(_F, found)

    return compiled
