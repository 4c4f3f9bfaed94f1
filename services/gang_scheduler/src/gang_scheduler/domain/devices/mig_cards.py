"""Cards that are split into MIG instances, and where on a card an instance of a profile can be.

A card has memory slices in a row, eight on most models, and one compute slice fewer. An instance takes a run of memory
slices that begins at a multiple of its own length, and as many compute slices as its profile's first number says: of
``3g.40gb`` three, and of 80 GiB the four memory slices that are 40. So a profile fits at few places, and not every mixture
fits on a card (NVIDIA's MIG user guide, the tables of profile placements).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from gang_scheduler.domain.devices.cards import NO_CELL, bytes_of, is_healthy, is_split
from kube import Manifest
from kube.devices import MIG_RESOURCE as MIG
from resources import Amounts, QuantityError, parse_quantity

_PROFILE = re.compile(r"(\d+)g\.(\d+)gb(?:[.+](.+))?")
_ROUNDING = 0.05
"""Names round the memory of a profile: 71gb of 141 is half of it."""

_GIB = 1 << 30


class Form(NamedTuple):
    """How many compute and memory slices an instance takes."""

    compute: int
    memory: int


_EIGHTHS = (Form(7, 8), Form(4, 4), Form(3, 4), Form(2, 2), Form(1, 2), Form(1, 1))
_QUARTERS = (Form(4, 4), Form(2, 2), Form(1, 1))
"""The largest first."""

_OF_QUARTERS = ("A30", "RTX")
"""Models with four memory slices and as many compute slices."""

SMALLEST_OF_EIGHTHS = 36 * _GIB


class Place(NamedTuple):
    """Where an instance is: its first memory slice, or its number on a card that is split for good; and what it covers."""

    start: int
    bits: int


class Instance(NamedTuple):
    """An instance that a card has been split into."""

    profile: str
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class MigCard:
    """``instances`` is what it is split into for good; None where it is split as pods ask for it."""

    index: int
    memory: int = 0
    cell: int = NO_CELL
    quarters: bool = False
    instances: tuple[Instance, ...] | None = None
    offers: frozenset[str] = frozenset()
    """The profiles that it can be split into, where these are not all that fit."""

    @property
    def forms(self) -> tuple[Form, ...]:
        """What it can be split into, the largest first; nothing where it is split for good."""
        if self.instances is not None:
            return ()
        return _QUARTERS if self.quarters else _EIGHTHS


@dataclass(frozen=True, slots=True)
class SliceNeed:
    """``count`` instances of ``profile``, on whatever cards."""

    profile: str
    count: int

    @property
    def resource(self) -> str:
        return MIG + self.profile


def slice_needs(requests: Amounts) -> tuple[SliceNeed, ...]:
    """The instances that the requests mean, the largest first."""
    found = [
        SliceNeed(name.removeprefix(MIG), count) for name, count in requests.items() if name.startswith(MIG) and count
    ]
    return tuple(sorted(found, key=lambda need: _size(need.profile))) if found else ()


@lru_cache(maxsize=4096)
def places(card: MigCard, profile: str) -> tuple[Place, ...]:
    """Where instances of ``profile`` can be on the empty card; no two of them overlap."""
    if card.instances is not None:
        return tuple(Place(at, 1 << at) for at, one in enumerate(card.instances) if one.profile == profile)
    form = _form(card, profile)
    if form is None or (card.offers and profile not in card.offers):
        return ()
    # Only one instance of a card can have its media engines.
    media = 1 << card.forms[0].memory if "me" in _extras(profile) else 0
    found = runs(card, form)
    return tuple(Place(one.start, one.bits | media) for one in (found[-1:] if media else found))


@lru_cache(maxsize=4096)
def runs(card: MigCard, form: Form) -> tuple[Place, ...]:
    """The runs of memory slices that an instance of ``form`` can cover."""
    whole = card.forms[0]
    starts = (start for start in range(0, whole.memory, form.memory) if start + form.compute <= whole.compute)
    return tuple(Place(start, ((1 << form.memory) - 1) << start) for start in starts)


def mig_cards_of(inventory: Manifest) -> tuple[MigCard, ...]:
    """The healthy cards of an inventory that are in MIG mode.

    An entry of ``gpus`` says it with ``mig``: true where the card is split as asked for, else the list of its instances,
    each a profile or {profile, uuid}; or a mapping of profiles to how many there are of each, or could be. What cannot be
    read has none.
    """
    try:
        return _cards(inventory)
    except (AttributeError, TypeError, ValueError):
        return ()


def _cards(inventory: Manifest) -> tuple[MigCard, ...]:
    cells = {int(gpu): at for at, node in enumerate(inventory.get("numa") or ()) for gpu in node.get("gpus") or ()}
    found = []
    for position, entry in enumerate(inventory.get("gpus") or ()):
        if is_split(entry) and is_healthy(entry):
            index = int(entry.get("index", position))
            cell = entry["numa"] if isinstance(entry.get("numa"), int) else cells.get(index, NO_CELL)
            found.append(_card(index, cell, entry))
    return tuple(sorted(found, key=lambda card: card.index))


def _card(index: int, cell: int, entry: Manifest) -> MigCard:
    memory, model, said = bytes_of(entry.get("memory")), str(entry.get("model") or ""), entry["mig"]
    quarters = 0 < memory < SMALLEST_OF_EIGHTHS or any(name in model for name in _OF_QUARTERS)
    if isinstance(said, Mapping):
        return _counted(MigCard(index, memory, cell, quarters), said)
    if not isinstance(said, list):
        return MigCard(index, memory, cell, quarters)
    return MigCard(index, memory, cell, quarters, tuple(_instance(one) for one in said))


def _counted(card: MigCard, counts: Mapping[str, object]) -> MigCard:
    """Instances that fit on a card together are there; of such that do not, it can be split into some."""
    numbers = {str(profile): _number(count) for profile, count in sorted(counts.items())}
    listed = [profile for profile in sorted(numbers, key=_size) for _ in range(numbers[profile])]
    taken = 0
    for profile in listed:
        place = next((one for one in places(card, profile) if not one.bits & taken), None)
        if place is None:
            return MigCard(card.index, card.memory, card.cell, card.quarters, offers=frozenset(listed))
        taken |= place.bits
    return MigCard(card.index, card.memory, card.cell, card.quarters, tuple(map(Instance, listed)))


def _instance(said: object) -> Instance:
    if isinstance(said, Mapping):
        return Instance(str(said.get("profile") or ""), str(said.get("uuid") or ""))
    return Instance(str(said))


def _number(count: object) -> int:
    try:
        return parse_quantity(count if isinstance(count, str | int) else 0)
    except QuantityError:
        return 0


def _size(profile: str) -> tuple[int, int, str]:
    """Orders profiles, the largest first."""
    read = _PROFILE.fullmatch(profile)
    return (-int(read[1]), -int(read[2]), profile) if read else (0, 0, profile)


def _extras(profile: str) -> Iterable[str]:
    read = _PROFILE.fullmatch(profile)
    return (read[3] or "").split(".") if read else ()


@lru_cache(maxsize=1024)
def _form(card: MigCard, profile: str) -> Form | None:
    """The slices of a profile; None when the card has no such profile."""
    read = _PROFILE.fullmatch(profile)
    if read is None:
        return None
    compute, named = int(read[1]), int(read[2])
    forms = [form for form in card.forms if form.compute == compute]
    if not forms or not card.memory:
        return forms[-1] if forms else None
    total = card.memory / _GIB

    def off(form: Form) -> float:
        return abs(named - total * form.memory / card.forms[0].memory)

    nearest = min(forms, key=off)
    return nearest if off(nearest) <= _ROUNDING * named + 0.6 else None
