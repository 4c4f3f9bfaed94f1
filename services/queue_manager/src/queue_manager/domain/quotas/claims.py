"""Rules of shares: from what a queue is promised and wants, the least and the most that it may deserve.

Each rule is one function on arrays of amounts (queues × resources) and one line of ``CLAIMS``. Between its least and its
most a queue gets its weighted max-min share of what its parent deserves; where both are equal, it gets exactly that.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Terms:
    """What is known of some queues (rows), by resource (columns). All amounts are ≥ 0.

    ``promised`` is the guarantee, or the sum of what the children have for certain if that is more; ``given`` the deserved
    amount of the queue's spec where ``is_given``; ``capability`` the hard cap, the largest amount there is where none is
    set; ``wanted`` what its pods ask for, or the sum of its children's most.
    """

    promised: Matrix
    given: Matrix
    is_given: Mask
    capability: Matrix
    wanted: Matrix


Claim = Callable[[Terms], tuple[Matrix, Matrix]]


def proportion(terms: Terms) -> tuple[Matrix, Matrix]:
    """Queues with a given amount deserve it; the others share the rest by weight, none beyond its wish or its cap."""
    most = np.minimum(terms.wanted, terms.capability)
    return _with_given(terms, most)


def capacity(terms: Terms) -> tuple[Matrix, Matrix]:
    """Queues with a given amount deserve it; the others deserve what they are promised and otherwise live on what is idle."""
    return _with_given(terms, terms.promised)


def dominant(terms: Terms) -> tuple[Matrix, Matrix]:
    """Every queue that wants anything has its weight's part of every resource, so that the most used one orders them."""
    wanting = np.any(terms.wanted > 0, axis=1, keepdims=True)
    return _with_given(terms, np.where(wanting, terms.capability, 0))


def _with_given(terms: Terms, most: Matrix) -> tuple[Matrix, Matrix]:
    # What is promised to the children together may be more than the queue may use.
    least = np.minimum(np.maximum(terms.promised, np.where(terms.is_given, terms.given, 0)), terms.capability)
    return least, np.where(terms.is_given, least, np.maximum(least, most))


CLAIMS: dict[str, Claim] = {"proportion": proportion, "capacity": capacity, "drf": dominant}
