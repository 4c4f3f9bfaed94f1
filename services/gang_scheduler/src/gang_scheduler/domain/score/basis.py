"""What the foresight found when it last looked: all of it that does not follow from the books of now, as plain data."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from gang_scheduler.domain.score.mixture import Ask, Asked, kinds_of
from gang_scheduler.domain.terms.node_rules import NodeRules, NodeTerm, Toleration
from gang_scheduler.domain.terms.selectors import Conjunction, Requirement
from kube import Manifest


class Basis(NamedTuple):
    """What a look found."""

    pods: int
    """With cards, that had a place."""

    card_memory: int
    """Bytes of an average card."""

    cards: int
    """How many there were."""

    rules: tuple[NodeRules, ...]
    asks: tuple[Asked, ...]
    prices: tuple[tuple[int, int, int], ...]
    """Set of rules, kind, and what a copy of it is worth where these rules admit it, in parts of a card's average worth."""

    mixed: float
    """What one card's worth of the mixture is worth, in the average worth of a card."""


def written(basis: Basis) -> bytes:
    """The basis as JSON."""
    content: Manifest = {
        **{name: getattr(basis, name) for name in ("pods", "card_memory", "cards", "prices", "mixed")},
        "rules": [_plain(rules) for rules in basis.rules],
        "asks": [[rule, *ask, count] for rule, ask, count in basis.asks],
    }
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


def read(data: Any) -> Basis | None:
    """The basis that ``written`` wrote; None if this cannot be one, so that somebody looks anew."""
    try:
        basis = Basis(
            int(data["pods"]),
            int(data["card_memory"]),
            int(data["cards"]),
            tuple(_rules(item) for item in data["rules"]),
            tuple((int(rule), Ask(*map(int, ask)), int(count)) for rule, *ask, count in data["asks"]),
            tuple((int(rule), int(kind), int(price)) for rule, kind, price in data["prices"]),
            float(data["mixed"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return basis if basis.mixed > 0 and _coherent(basis) else None


def _coherent(basis: Basis) -> bool:
    rules = len(basis.rules)
    if not basis.asks or not all(0 <= rule < rules for rule, *_ in (*basis.asks, *basis.prices)):
        return False
    kinds = len(kinds_of(basis.asks, rules).cpu)
    return all(0 <= kind < kinds for _, kind, _ in basis.prices)


def _plain(rules: NodeRules) -> Manifest:
    required = None if rules.required is None else [[term.labels, term.fields] for term in rules.required]
    return {"selector": rules.selector, "required": required, "tolerations": rules.tolerations}


def _rules(data: Any) -> NodeRules:
    required = data["required"]
    return NodeRules(
        _conjunction(data["selector"]),
        None if required is None else tuple(NodeTerm(*map(_conjunction, term)) for term in required),
        (),
        tuple(Toleration(*map(str, item)) for item in data["tolerations"]),
    )


def _conjunction(data: Iterable[Any]) -> Conjunction:
    return tuple(Requirement(str(key), str(operator), tuple(map(str, values))) for key, operator, values in data)
