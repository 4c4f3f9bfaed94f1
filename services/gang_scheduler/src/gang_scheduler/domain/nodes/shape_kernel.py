"""``ShapeView`` brought up to date by compiled code, where pods to come decide between nodes: the same as in vectors."""

import numpy as np

from gang_scheduler.domain.devices.card_room import MOST_COPIES
from gang_scheduler.domain.nodes.jit import jit
from gang_scheduler.domain.nodes.renewal import BOTH, COPIES, KEYS, Kernel
from gang_scheduler.domain.nodes.vectors import Ints, Mask
from gang_scheduler.domain.score import loss_kernel
from gang_scheduler.domain.score.mixture import Floats
from gang_scheduler.domain.score.scoring import FULL

_score = loss_kernel.score
_PER_WORD = 9
"""So many numbers of up to 100 are kept in one of 64 bits."""

_PRIME = -7046029254386353131
"""Near 2 ** 64 through the golden ratio, as a signed number of 64 bits."""


@jit()
def copies_of_card(need: Ints, has: int, core: int, memory: int, virtual: int) -> int:
    """How many pods one card could hold a part of."""
    if has <= 0 or ((need[0] or need[3]) and core <= 0):
        return 0
    fits = MOST_COPIES
    if need[0]:
        fits = min(fits, core // need[0])
    if need[1] or need[2]:
        fits = min(fits, memory // (need[1] or max(1, -(-has * need[2] // 100))))
    if need[3]:
        fits = min(fits, virtual)
    return max(fits, 0)


@jit()
def copies_of_cards(
    slot: int,
    count: int,
    need: Ints,
    have: Ints,
    core: Ints,
    memory: Ints,
    virtual: Ints,
    parts: Ints,
) -> int:
    """``Devices.copies`` of pods that ask for nothing but cards. ``need`` is core, memory, ratio, virtual; ``parts`` is scrap."""
    total = fits = 0
    last = -1
    for card in range(len(parts)):
        # Cards of a node are mostly like the one before them, and divisions are slow.
        if last < 0 or not (
            core[card, slot] == core[last, slot]
            and memory[card, slot] == memory[last, slot]
            and have[card, slot] == have[last, slot]
            and (need[3] == 0 or virtual[card, slot] == virtual[last, slot])
        ):
            fits = copies_of_card(need, have[card, slot], core[card, slot], memory[card, slot], virtual[card, slot])
        last = card
        parts[card] = fits
        total += fits
    most = total // count
    while count > 1:
        fewer = 0
        for card in range(len(parts)):
            fewer += min(parts[card], most)
        if fewer // count >= most:
            break
        most = fewer // count
    return most


@jit()
def fullness(slot: int, rows: Ints, needs: Ints, weights: Ints, weight: int, allocatable: Ints, used: Ints) -> int:
    """``RoomScore`` of one node, packing."""
    share = 0.0
    for at in range(len(rows)):
        share += (used[rows[at], slot] + needs[at]) / max(allocatable[rows[at], slot], 1) * weights[at]
    return int(np.rint(min(max(share / weight, 0.0), 1.0) * FULL))


@jit()
def find(states: Ints, new: int, places: Ints) -> int:
    """Where in the table the state ``new`` is, or would be: at a place that is 0."""
    hashed = 0
    for at in range(states.shape[1]):
        hashed = (hashed ^ states[new, at]) * _PRIME
        hashed ^= hashed >> 29
    last = len(places) - 1
    place = hashed & last
    while places[place]:
        same = True
        for at in range(states.shape[1]):
            if states[places[place], at] != states[new, at]:
                same = False
                break
        if same:
            break
        place = (place + 1) & last
    return place


@jit()
def renew(
    slots: Ints,
    mask: Mask,
    base: Ints,
    copies: Ints,
    keys: Ints,
    rows: Ints,
    needs: Ints,
    weights: Ints,
    weight: int,
    allocatable: Ints,
    used: Ints,
    count: int,
    whole_cards: bool,
    need: Ints,
    have: Ints,
    core: Ints,
    memory: Ints,
    virtual: Ints,
    whole: Ints,
    ask: Ints,
    plain_rows: Ints,
    classes: Ints,
    price: Floats,
    by_cpu: Floats,
    by_memory: Floats,
    by_cards: Floats,
    parts_of: Floats,
    served: Floats,
    beside: Floats,
    mix: float,
    rank_bits: int,
    what: int,
) -> int:
    """Renew COPIES, KEYS, or BOTH, at ``slots``; returns how many more copies there are."""
    scrap, free, parts = np.empty(len(core), np.int64), np.empty(len(core), np.int64), np.empty(len(by_cpu), np.float64)
    # Nodes in the same state have the same score: states are told apart by what is left, and kept in a table by their hash.
    room = 2
    while room < 2 * len(slots):
        room *= 2
    words = 3 + (len(core) + _PER_WORD - 1) // _PER_WORD
    places, states = np.zeros(room, np.int64), np.empty((len(slots) + 1, words), np.int64)
    scores, known, more = np.empty(len(slots) + 1, np.int64), 0, 0
    for slot in slots:
        fits = copies[slot] if what == KEYS else 0
        if mask[slot] and what != KEYS:
            fits = 1 << 62
            for at in range(len(rows)):
                fits = min(fits, (allocatable[rows[at], slot] - used[rows[at], slot]) // needs[at])
            if count and fits > 0:
                if whole_cards:
                    fits = min(fits, whole[slot] // count)
                else:
                    fits = min(fits, copies_of_cards(slot, count, need, have, core, memory, virtual, scrap))
            fits = max(fits, 0)
        more += fits - copies[slot]
        copies[slot] = fits
        if not fits:
            keys[slot] = -1
            continue
        if what == COPIES:
            continue
        if have[0, slot] <= 0:
            keys[slot] = (fullness(slot, rows, needs, weights, weight, allocatable, used) << rank_bits) + base[slot]
            continue
        of, new = classes[slot], known + 1
        states[new, 0] = of
        for at in range(2):
            states[new, 1 + at] = max(allocatable[plain_rows[at], slot] - used[plain_rows[at], slot], 0)
        for at in range(3, words):
            states[new, at] = 0
        for card in range(len(core)):
            free[card] = min(max(core[card, slot], 0), 100) if have[card, slot] > 0 else 0
            states[new, 3 + card // _PER_WORD] = states[new, 3 + card // _PER_WORD] << 7 | free[card]
        place = find(states, new, places)
        if places[place] == 0:
            places[place] = known = new
            scores[new] = _score(
                free, states[new, 1], states[new, 2], ask[0], ask[1], ask[2], ask[3],
                price[of], by_cpu, by_memory, by_cards, parts_of, served[of], beside[of], mix, parts,
            )  # fmt: skip
        keys[slot] = (scores[places[place]] << rank_bits) + base[slot]
    return more


def ready() -> Kernel:
    """The kernel, when it is compiled for what it will be given: renewing no node of none."""
    numbers, table, reals = np.zeros(0, np.int64), np.zeros((0, 0), np.int64), np.zeros(0)
    matrix, view = np.zeros((0, 0)), (np.zeros(0, np.bool_), numbers, numbers, numbers)
    renew(
        np.zeros(0, np.intp), *view, numbers, numbers, numbers, 1, table, table, 0, False, numbers,
        table, table, table, table, numbers, numbers, numbers, numbers,
        matrix, reals, reals, reals, matrix, matrix, matrix, 1.0, 20, BOTH,
    )  # fmt: skip
    return renew
