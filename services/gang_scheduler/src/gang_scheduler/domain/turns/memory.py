"""What no fact tells and a restart must not lose: for whom room is kept, who is at the head of a queue since when, how long runs
took, what the foresight found when it last looked."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gang_scheduler.domain.dra.requests import Share
from gang_scheduler.domain.dra.slices import DeviceId
from gang_scheduler.domain.line.claims import Basis, Claim
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.terms.gang_terms import GroupId
from gang_scheduler.domain.turns.backfill import Place
from kube import Key, Manifest

Since = Mapping[Unit, int]
"""When a unit became the head of its queue, in milliseconds since the epoch."""


def written(claim: Claim) -> Manifest:
    """A claim as plain data."""
    more: Manifest = {"devices": [list(device) for device in claim.devices]} if claim.devices else {}
    if claim.shares:
        more["shares"] = [[list(device), [list(part) for part in taken]] for device, taken in claim.shares]
    if claim.earliest is not None:
        more["earliest"] = claim.earliest
    return {
        "unit": [list(gang) for gang in claim.unit],
        "basis": str(claim.basis),
        "places": [[*key, uid, node] for key, (uid, node) in sorted(claim.places.items())],
        "awaited": [[*key, uid] for key, uid in sorted(claim.awaited.items())],
        "until": claim.until,
        **more,
    }


def read(data: Mapping[str, Any]) -> Claim:
    """The claim that ``written`` wrote."""
    return Claim(
        _unit(data["unit"]),
        Basis(data["basis"]),
        {Key(*key): (uid, node) for *key, uid, node in data["places"]},
        {Key(*key): uid for *key, uid in data["awaited"]},
        data["until"],
        data.get("earliest"),
        tuple(DeviceId(*device) for device in data.get("devices") or ()),
        tuple(
            Share(DeviceId(*device), tuple((str(name), int(amount)) for name, amount in taken))
            for device, taken in data.get("shares") or ()
        ),
    )


def dump(
    claims: Iterable[Claim],
    heads: Since,
    first: Mapping[str, tuple[Unit, Place]],
    runs: Iterable[Iterable[str | int]] = (),
    foresight: bytes = b"",
    cleared: int = 0,
) -> bytes:
    """All of it as bytes.

    ``first`` are those that are the heads of their queues now, with their places; ``runs`` the lengths of past runs;
    ``foresight`` what the last look found, as JSON: it is long, and seldom another; ``cleared`` when pods were last sent away
    from nodes whose hours were over.
    """
    waiting = [[_parts(unit), since] for unit, since in sorted(heads.items())]
    content: Manifest = {
        "claims": [written(claim) for claim in claims],
        "heads": waiting,
        "first": [[queue, _parts(unit), list(place[:4])] for queue, (unit, place) in sorted(first.items())],
    }
    if lengths := list(runs):
        content["runs"] = lengths
    if cleared:
        content["cleared"] = cleared
    dumped = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
    return dumped[:-1] + b',"foresight":' + foresight + b"}" if foresight else dumped


class Remembered(NamedTuple):
    """What ``dump`` wrote; ``foresight`` as plain data, None when nothing was known."""

    claims: list[Claim]
    heads: dict[Unit, int]
    first: dict[str, tuple[Unit, Place]]
    runs: list[list[str | int]]
    foresight: Any
    cleared: int


def load(content: bytes) -> Remembered:
    """What ``dump`` wrote."""
    data = json.loads(content)
    heads = {_unit(unit): int(since) for unit, since in data["heads"]}
    first: dict[str, tuple[Unit, Place]] = {}
    for queue, parts, (priority, stage, created, name) in data.get("first", ()):
        unit = _unit(parts)
        first[queue] = (unit, (priority, stage, created, name, unit))
    claims = [read(item) for item in data["claims"]]
    return Remembered(claims, heads, first, data.get("runs") or [], data.get("foresight"), data.get("cleared") or 0)


def _parts(unit: Unit) -> list[list[str]]:
    return [list(gang) for gang in unit]


def _unit(data: Iterable[Iterable[str]]) -> Unit:
    return tuple(GroupId(*gang) for gang in data)
