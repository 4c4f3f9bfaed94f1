"""How kernels are compiled. Only kernels import it: numba takes long to come."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_F = TypeVar("_F", bound=Callable[..., object])


def jit(fastmath: set[str] | None = None, inline: str = "never") -> Callable[[_F], _F]:
    """Compile a function, with the compiled code kept for the next process where there is a place for it.

    ``inline`` is ``always`` for what is called often with many arrays: to hand these over takes longer than most work on them.
    """

    def compiled(function: _F) -> _F:
        options: dict[str, Any] = {"error_model": "numpy", "fastmath": fastmath or False, "inline": inline}
        try:
            found = njit(cache=True, **options)(function)
        except RuntimeError:  # there is no place to keep it
            found = njit(**options)(function)
        return cast(_F, found)

    return compiled
