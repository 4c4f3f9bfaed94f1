"""``ShapeView`` brought up to date by compiled code, where pods to come decide between nodes: the same as in vectors."""

import numpy as np

from gang_scheduler.domain.columns.compiled import Renew
from gang_scheduler.domain.columns.jit import jit
from gang_scheduler.domain.columns.vectors import Ids, Ints, Mask
from gang_scheduler.domain.devices.card_room import MOST_COPIES
from gang_scheduler.domain.nodes.node_mirror import PER_CARD
from gang_scheduler.domain.score import state_kernel
from gang_scheduler.domain.score.mixture import Floats
from gang_scheduler.domain.score.scoring import FULL

_number, _score = state_kernel.number, state_kernel.score


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


@jit(inline="always")
def copies_of_cards(rows: Ints, slot: int, first: int, count: int, need: Ints, parts: Ints) -> int:
    """``Devices.copies`` of pods that ask for nothing but cards. ``need`` is core, memory, ratio, virtual; ``parts`` is scrap."""
    total = fits = 0
    last = -1
    for card in range(len(parts)):
        at = first + PER_CARD * card
        # Cards of a node are mostly like the one before them, and divisions are slow.
        if last < 0 or not (
            rows[slot, at] == rows[slot, last]
            and rows[slot, at + 1] == rows[slot, last + 1]
            and rows[slot, at + 2] == rows[slot, last + 2]
            and rows[slot, at + 3] == rows[slot, last + 3]
        ):
            fits = copies_of_card(need, rows[slot, at], rows[slot, at + 1], rows[slot, at + 2], rows[slot, at + 3])
        last = at
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


@jit(inline="always")
def copies_on(
    nodes: Ints, slot: int, first: int, rows: Ints, needs: Ints, count: int, whole: bool, need: Ints, scrap: Ints
) -> int:
    """How many copies fit on a node that the pod may go to."""
    # Most nodes are full of something, and divisions are slow.
    for at in range(len(rows)):
        if nodes[slot, rows[at]] < needs[at]:
            return 0
    fits = 1 << 62
    if count and whole:
        fits = nodes[slot, first - 1] // count
    elif count:
        fits = copies_of_cards(nodes, slot, first, count, need, scrap)
    for at in range(len(rows) if fits > 0 else 0):
        has, each = nodes[slot, rows[at]], needs[at]
        # Where the product cannot wrap it tells whether a division is needed.
        if fits >= 1 << 20 or each >= 1 << 42 or fits * each > has:
            fits = min(fits, has // each)
    return max(fits, 0)


@jit()
def mirror(
    slots: Ints,
    nodes: Ints,
    allocatable: Ints,
    used: Ints,
    have: Ints,
    core: Ints,
    memory: Ints,
    virtual: Ints,
    whole: Ints,
) -> None:
    """Write the rows of ``nodes`` anew."""
    resources = len(used)
    for slot in slots:
        for row in range(resources):
            nodes[slot, row] = allocatable[row, slot] - used[row, slot]
        nodes[slot, resources] = whole[slot]
        for card in range(len(have)):
            at = resources + 1 + PER_CARD * card
            nodes[slot, at], nodes[slot, at + 1] = have[card, slot], core[card, slot]
            nodes[slot, at + 2], nodes[slot, at + 3] = memory[card, slot], virtual[card, slot]


@jit(inline="always")
def recount(
    slots: Ints,
    mask: Mask,
    copies: Ints,
    nodes: Ints,
    first: int,
    rows: Ints,
    needs: Ints,
    count: int,
    whole: bool,
    need: Ints,
    scrap: Ints,
    chosen: Ints,
) -> tuple[int, int]:
    """Count the copies at ``slots`` anew, and note each of these once in ``chosen``; how many more copies, and how many nodes."""
    more, done, nodes_of = 0, np.zeros(len(mask), np.bool_), 0
    for slot in slots:
        if not done[slot]:
            done[slot], chosen[nodes_of] = True, slot
            nodes_of += 1
            fits = copies_on(nodes, slot, first, rows, needs, count, whole, need, scrap) if mask[slot] else 0
            more += fits - copies[slot]
            copies[slot] = fits
    return more, nodes_of


@jit(inline="always")
def unscored(chosen: Ints, copies: Ints, of: Ints, scores: Ids, new: Ints) -> int:
    """Note in ``new`` the states of which the scores are missing; returns how many there are."""
    count = 0
    for slot in chosen:
        state = of[slot]
        if copies[slot] and state and scores[state] < 0:
            new[count], scores[state] = state, 0
            count += 1
    return count


@jit(inline="always")
def first_of(keys: Ints) -> int:
    """The node with the highest key, -1 where none fits."""
    highest = np.int64(-1)
    for slot in range(len(keys)):
        highest = max(highest, keys[slot])
    best = -1
    # All at once: to remember the place along with the key would take longer than to look for it.
    for slot in range(len(keys) if highest >= 0 else 0):
        if keys[slot] == highest:
            best = slot
            break
    return best


@jit()
def renew(
    slots: Ints,
    everywhere: bool,
    mask: Mask,
    base: Ints,
    copies: Ints,
    keys: Ints,
    scores: Ids,
    rows: Ints,
    needs: Ints,
    weights: Ints,
    weight: int,
    count: int,
    whole_cards: bool,
    need: Ints,
    plain: Ints,
    ask: Ints,
    unmirrored: Ints,
    nodes: Ints,
    allocatable: Ints,
    used: Ints,
    have: Ints,
    core: Ints,
    memory: Ints,
    virtual: Ints,
    whole: Ints,
    unnumbered: Ints,
    of: Ints,
    words: Ints,
    parts: Floats,
    serves: Floats,
    worth: Floats,
    places: Ints,
    known: Ints,
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
) -> tuple[int, int]:
    """Renew the view at ``slots``, some maybe named twice, and the keys of all copies if ``everywhere``.

    Before, the rows and states of nodes of which these are not known any more. Returns how many more copies there are, and the
    best node, -1 where there is none.
    """
    free, scrap, rest = (
        np.empty(len(core), np.int64),
        np.empty(len(core), np.int64),
        np.empty((1, len(by_cpu)), np.float64),
    )
    first = len(used) + 1
    mirror(unmirrored, nodes, allocatable, used, have, core, memory, virtual, whole)
    _number(
        unnumbered, nodes, plain, first, of, words, parts, serves, worth, places, known, classes,
        price, by_cpu, by_memory, by_cards, parts_of, served, beside, mix, free,
    )  # fmt: skip
    chosen, new = np.empty(len(mask), np.int64), np.empty(known[0] + 1, np.int64)
    more, chosen_of = recount(slots, mask, copies, nodes, first, rows, needs, count, whole_cards, need, scrap, chosen)
    chosen = np.arange(len(mask)) if everywhere else chosen[:chosen_of]
    _score(
        new[: unscored(chosen, copies, of, scores, new)], scores, ask, words, parts, serves, worth,
        price, by_cpu, by_memory, by_cards, parts_of, served, beside, mix, free, rest,
    )  # fmt: skip
    for slot in chosen:
        if not copies[slot]:
            keys[slot] = -1
        elif not of[slot]:
            keys[slot] = (fullness(int(slot), rows, needs, weights, weight, allocatable, used) << rank_bits) + base[
                slot
            ]
        else:
            keys[slot] = (np.int64(scores[of[slot]]) << rank_bits) + base[slot]
    return more, first_of(keys)


def ready() -> Renew:
    """The kernel, when it is compiled for what it will be given: renewing no node of none."""
    numbers, table, reals, matrix = np.zeros(0, np.int64), np.zeros((0, 0), np.int64), np.zeros(0), np.zeros((0, 0))
    view = np.zeros(0, np.bool_), numbers, numbers, numbers
    renew(
        numbers, False, *view, np.zeros(0, np.int32), numbers, numbers, numbers, 1, 0, False, numbers, numbers, numbers,
        numbers, table, table, table, table, table, table, table, numbers,
        numbers, numbers, table, matrix, reals, reals, np.zeros(2, np.int64), np.zeros(1, np.int64), numbers,
        matrix, reals, reals, reals, matrix, matrix, matrix, 1.0, 20,
    )  # fmt: skip
    return renew
