"""Which pod of a hot node goes first: the least important, then the smallest that is enough by itself, then the youngest."""

from collections.abc import Mapping
from fractions import Fraction

from descheduler.domain.cluster.pod_traits import Importance, began_at, importance
from kube import Key, Object
from resources import Amounts

Rank = tuple[Importance, Fraction, int, Key]


def rank(pod: Object, usage: Amounts, excess: Amounts, weights: Mapping[str, int]) -> Rank:
    """The lowest goes first. ``excess`` is what the node uses above its limits, of resources of which it does."""
    return importance(pod), -fit(usage, excess, weights), -began_at(pod), pod.key


def fit(usage: Amounts, excess: Amounts, weights: Mapping[str, int]) -> Fraction:
    """How well what a pod uses fits the excess: from 0 for nothing, up to 1 for nearly all, 2 for exactly all, less for more."""
    total, score = sum(weights.get(name, 1) for name in excess), Fraction(0)
    for name, amount in excess.items():
        ratio = Fraction(usage.get(name, 0), amount)
        score += weights.get(name, 1) * (ratio if ratio < 1 else 1 + 1 / ratio)
    return score / total if total else Fraction(0)
