"""Integer quantities in Kubernetes' syntax, and vectors of them.

Nothing in here is ever a float: ``cpu`` counts milli-cores, everything else counts whole units (bytes, cards, pods).
"""

from resources.amounts import (
    Amounts,
    add,
    exceeds,
    fits,
    format_amounts,
    is_zero,
    largest,
    parse_amounts,
    smallest,
    subtract,
    times,
)
from resources.quantity import LARGEST, QuantityError, format_quantity, parse_milli, parse_nano, parse_quantity

__all__ = [
    "LARGEST",
    "Amounts",
    "QuantityError",
    "add",
    "exceeds",
    "fits",
    "format_amounts",
    "format_quantity",
    "is_zero",
    "largest",
    "parse_amounts",
    "parse_milli",
    "parse_nano",
    "parse_quantity",
    "smallest",
    "subtract",
    "times",
]
