"""A client's methods from the calls that they make: same parameters, same words."""

import inspect
from collections.abc import Callable
from typing import Any


def like(call: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    """``method`` with the name, the words and the parameters of ``call``, behind ``self``."""
    signature = inspect.signature(call)
    myself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__name__, method.__doc__ = call.__name__, call.__doc__
    method.__signature__ = signature.replace(parameters=[myself, *signature.parameters.values()])  # type: ignore[attr-defined]
    return method
