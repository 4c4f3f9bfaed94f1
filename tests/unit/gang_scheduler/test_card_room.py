"""Which cards can hold a part of a pod, and which one gets it: the vectors over nodes and the choice on one, against plain rules."""

import json

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.columns.vectors import ALL
from gang_scheduler.domain.devices.allotments import Allotment
from gang_scheduler.domain.devices.card_room import CardRoom
from gang_scheduler.domain.devices.card_wishes import CardWish
from gang_scheduler.domain.devices.device_needs import CardNeed, DeviceNeed
from gang_scheduler.domain.devices.devices import Devices
from gang_scheduler.domain.devices.node_devices import Tenant
from gang_scheduler.domain.devices.node_inventory import NodeInventory
from kube import Key

QUIET = settings(max_examples=400, deadline=None)
AMOUNTS = st.sampled_from([(1, 0), (2, 0), (4, 0), (9, 0), (0, 1), (0, 20), (0, 30), (0, 50), (0, 100)])
"""Bytes of a card, or percent of its memory."""


@st.composite
def needs(draw: st.DrawFn) -> CardNeed:
    """Whole cards, parts of one or of several, virtual GPUs."""
    core, (memory, ratio) = draw(st.sampled_from([0, 30, 50, 100])), draw(AMOUNTS)
    return CardNeed("cards", draw(st.integers(1, 3)), core, memory, ratio, draw(st.booleans()))


NODES = st.lists(st.tuples(st.sampled_from([4, 7]), st.sampled_from([0, 2])), max_size=4)
"""Of each card of a node its memory, and how many virtual GPUs it can be."""

TAKEN = st.lists(st.tuples(st.integers(0, 1), needs(), st.sets(st.integers(0, 3), min_size=1)), max_size=5)
"""Pods that are known to have cards: the node, what of each, and which. Together they may have more than there is."""

NO_CORES_LEFT = [(0, CardNeed("cards", 1, 100, 1, 0), {0})]
VIRTUAL = CardNeed("cards", 1, 0, 1, 0, virtual=True)


def devices_of(nodes: list[list[tuple[int, int]]], taken: list[tuple[int, CardNeed, set[int]]]) -> Devices:
    found = Devices()
    for slot, cards in enumerate(nodes):
        gpus = [
            {"index": at, "uuid": f"card-{at}", "memory": memory, "slots": slots}
            for at, (memory, slots) in enumerate(cards)
        ]
        found.put(slot, NodeInventory(json.dumps({"gpus": gpus}), (("nvidia.com/gpu", len(cards)),)))
    for number, (slot, need, indexes) in enumerate(taken):
        name = f"p-{number}"
        key, has = Key("Pod", "default", name), Allotment(need.resource, tuple(sorted(indexes)))
        if slot < len(nodes):
            found.take(slot, [Tenant(key, DeviceNeed(need), has, True, (0, "", "default", name))])
    return found


def holds(room: CardRoom, at: int, need: CardNeed) -> bool:
    """Whether nothing that a pod asks for would be below zero if a part of it were on the card."""
    card = room.cards[at]
    if need.wish is not None and not need.wish.allows(card):
        return False
    if need.virtual and (room.slots[at] < 1 or (not need.core and room.core[at] <= 0)):
        return False
    memory = need.memory if need.memory else card.memory * need.ratio / 100
    return (not need.core or room.core[at] - need.core >= 0) and room.memory[at] - memory >= 0


@QUIET
@given(st.lists(NODES, min_size=1, max_size=2), TAKEN, needs())
@example([[(4, 2)]], NO_CORES_LEFT, VIRTUAL)
def test_the_nodes_that_have_enough_cards_are_those_of_which_enough_cards_hold_a_part(
    nodes: list[list[tuple[int, int]]], taken: list[tuple[int, CardNeed, set[int]]], need: CardNeed
) -> None:
    """Also on broken cards alone, and where more was taken than there is."""
    devices = devices_of(nodes, taken)
    _, _, enough = next(devices.filters(DeviceNeed(need)))
    spared = devices.spared(DeviceNeed(need), ALL)
    for slot in range(len(nodes)):
        room = devices.room(slot)
        held = [at for at in range(len(room.cards)) if holds(room, at, need)]
        broken = [at for at in held if room.core[at] < 100 or room.memory[at] < room.cards[at].memory]
        assert enough[slot] == (len(held) >= need.count)
        assert spared[slot] == (len(broken) >= need.count)
        one = np.arange(len(enough)) == slot
        assert next(devices.filters(DeviceNeed(need), among=one))[2][slot] == enough[slot]
    assert not enough[len(nodes) :].any()


@QUIET
@given(NODES, TAKEN, needs(), st.sets(st.integers(0, 3)))
@example([(4, 2)], NO_CORES_LEFT, VIRTUAL, set[int]())
def test_a_share_goes_to_the_fullest_card_that_holds_it(
    cards: list[tuple[int, int]], taken: list[tuple[int, CardNeed, set[int]]], need: CardNeed, avoided: set[int]
) -> None:
    """Of equally full ones the first; a card that the pod does not want is left out."""
    wish = CardWish(avoid_cards=tuple(sorted(f"card-{at}" for at in avoided))) if avoided else None
    need = CardNeed(need.resource, 1, min(need.core, 99), need.memory, need.ratio, need.virtual, wish)
    room = devices_of([cards], taken).room(0)
    held = [at for at in range(len(room.cards)) if holds(room, at, need)]
    fullest = min(held, key=lambda at: (room.core[at], room.memory[at], at), default=None)
    assert room.choose_cards(need, range(len(cards)), False) == (None if fullest is None else (fullest,))
    assert [at for at in range(len(cards)) if room.copies_on(at, need) > 0] == held


@QUIET
@given(NODES, TAKEN, st.integers(1, 3))
def test_whole_cards_are_the_first_that_nobody_has_any_of(
    cards: list[tuple[int, int]], taken: list[tuple[int, CardNeed, set[int]]], count: int
) -> None:
    """Where no card is nearer to another than to a third."""
    room = devices_of([cards], taken).room(0)
    empty = CardRoom(room.cards)
    free = [at for at in range(len(cards)) if (room.core[at], room.memory[at]) == (empty.core[at], empty.memory[at])]
    chosen = room.choose_cards(CardNeed("cards", count), range(len(cards)), False)
    assert chosen == (tuple(free[:count]) if len(free) >= count else None)
    assert room.whole == len(free)
