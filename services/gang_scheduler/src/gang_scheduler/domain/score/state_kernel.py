"""Numbers the states of nodes, and scores them for a pod; compiled. Only ``shape_kernel`` imports it."""

import numpy as np

from gang_scheduler.domain.columns.jit import jit
from gang_scheduler.domain.columns.vectors import Ids, Ints
from gang_scheduler.domain.nodes.node_mirror import PER_CARD
from gang_scheduler.domain.score import loss_kernel
from gang_scheduler.domain.score.mixture import Floats
from gang_scheduler.domain.score.node_states import CARDS, PER_WORD

_fill, _worth, _fullest, _score = loss_kernel.fill, loss_kernel.worth, loss_kernel.fullest, loss_kernel.score
_price, _tight, _rounded, _total = (
    loss_kernel.price_of_copies,
    loss_kernel.tight,
    loss_kernel.rounded,
    loss_kernel.total,
)
_PRIME = -7046029254386353131
"""Near 2 ** 64 through the golden ratio, as a signed number of 64 bits."""


@jit(inline="always")
def find(words: Ints, new: int, places: Ints) -> int:
    """Where among ``places`` the state ``new`` is, or would be: at one that is 0."""
    hashed = 0
    for at in range(words.shape[1]):
        hashed = (hashed ^ words[new, at]) * _PRIME
        hashed ^= hashed >> 29
    last = len(places) - 1
    place = hashed & last
    while places[place]:
        same = True
        for at in range(words.shape[1]):
            if words[places[place], at] != words[new, at]:
                same = False
                break
        if same:
            break
        place = (place + 1) & last
    return place


@jit(inline="always")
def write(words: Ints, new: int, of: int, rows: Ints, slot: int, plain: Ints, first: int, cards: int) -> None:
    """Note the state of a node as ``new``; the cards of ``rows`` begin at ``first``."""
    words[new, 0], words[new, 1], words[new, 2] = of, max(rows[slot, plain[0]], 0), max(rows[slot, plain[1]], 0)
    for at in range(CARDS, words.shape[1]):
        words[new, at] = 0
    for card in range(cards):
        place, at = first + PER_CARD * card, CARDS + card // PER_WORD
        free = min(max(rows[slot, place + 1], 0), 100) if rows[slot, place] > 0 else 0
        words[new, at] = words[new, at] << 7 | free


@jit(inline="always")
def read_cards(words: Ints, state: int, free: Ints) -> None:
    """What ``write`` noted of the cards."""
    for at in range(CARDS, words.shape[1]):
        word, first = words[state, at], (at - CARDS) * PER_WORD
        for card in range(min(first + PER_WORD, len(free)) - 1, first - 1, -1):
            free[card] = word & 127
            word >>= 7


@jit()
def number(
    slots: Ints,
    rows: Ints,
    plain: Ints,
    first: int,
    of: Ints,
    words: Ints,
    parts: Floats,
    serves: Floats,
    worth: Floats,
    places: Ints,
    count: Ints,
    classes: Ints,
    price: Floats,
    by_cpu: Floats,
    by_memory: Floats,
    by_cards: Floats,
    parts_of: Floats,
    served: Floats,
    beside: Floats,
    mix: float,
    free: Ints,
) -> None:
    """Find the states of nodes that changed, 0 for those without cards; ``free`` is scrap."""
    for slot in slots:
        if rows[slot, first] <= 0:
            of[slot] = 0
            continue
        new, at = count[0] + 1, classes[slot]
        write(words, new, at, rows, slot, plain, first, len(free))
        place = find(words, new, places)
        if places[place] == 0:
            places[place] = count[0] = new
            read_cards(words, new, free)
            serves[new] = _fill(free, at, parts_of, served, new, parts)
            worth[new] = _worth(
                at, serves[new], words[new, 1], words[new, 2],
                price, by_cpu, by_memory, by_cards, parts_of, beside, mix, new, parts,
            )  # fmt: skip
        of[slot] = places[place]


@jit()
def score(
    states: Ints,
    scores: Ids,
    ask: Ints,
    words: Ints,
    parts: Floats,
    serves: Floats,
    worth: Floats,
    price: Floats,
    by_cpu: Floats,
    by_memory: Floats,
    by_cards: Floats,
    parts_of: Floats,
    served: Floats,
    beside: Floats,
    mix: float,
    free: Ints,
    left: Floats,
) -> None:
    """Note in ``scores`` those of nodes in ``states`` for a pod that asks for ``ask``; ``free`` and ``left`` are scrap."""
    prices, stills, tights = np.empty(len(states)), np.empty(len(states)), np.empty(len(states))
    for number in range(len(states)):
        state = states[number]
        at, still, cards, has = words[state, 0], serves[state], 0, 0
        row, source = state, parts
        read_cards(words, state, free)
        for _ in range(ask[0]):
            card = _fullest(free, ask[1])
            if card < 0:
                break
            if cards and free[card] != has:
                # Cards that are not alike: what the ones before leave is written down.
                for kind in range(left.shape[1]):
                    left[0, kind] = source[row, kind] + cards * (parts_of[has - ask[1], kind] - parts_of[has, kind])
                row, source, cards = 0, left, 0
            has = free[card]
            still -= served[at, has] - served[at, has - ask[1]]
            free[card] = -1
            cards += 1
        cpu, memory = float(max(words[state, 1] - ask[2], 0)), float(max(words[state, 2] - ask[3], 0))
        prices[number] = _price(
            at, price, by_cpu, by_memory, by_cards, parts_of, cpu, memory,
            row, source, cards, has, has - ask[1] if cards else 0,
        )  # fmt: skip
        stills[number], tights[number] = still, _tight(still, cpu, memory, beside[at, 0], beside[at, 1])
    # All roots at once: one after the other, each would wait for the one before it.
    for number in range(len(states)):
        tights[number] = _rounded(tights[number])
    for number in range(len(states)):
        after = _total(prices[number], stills[number], tights[number], mix)
        scores[states[number]] = _score(worth[states[number]], after)
