"""What no fact tells and a restart must not lose: for whom room is kept, and since when who has been at the head of a queue."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gang_scheduler.domain.claims import Basis, Claim
from gang_scheduler.domain.gang_terms import GroupId
from gang_scheduler.domain.waiting_line import Unit
from kube import Key, Manifest

Since = Mapping[Unit, int]
"""When a unit became the head of its queue, in milliseconds since the epoch."""


def written(claim: Claim) -> Manifest:
    """A claim as plain data."""
    return {
        "unit": [list(gang) for gang in claim.unit],
        "basis": str(claim.basis),
        "places": [[*key, uid, node] for key, (uid, node) in sorted(claim.places.items())],
        "awaited": [[*key, uid] for key, uid in sorted(claim.awaited.items())],
        "until": claim.until,
    }


def read(data: Mapping[str, Any]) -> Claim:
    """The claim that ``written`` wrote."""
    return Claim(
        _unit(data["unit"]),
        Basis(data["basis"]),
        {Key(*key): (uid, node) for *key, uid, node in data["places"]},
        {Key(*key): uid for *key, uid in data["awaited"]},
        data["until"],
    )


def dump(claims: Iterable[Claim], heads: Since) -> bytes:
    """All of it as bytes."""
    waiting = [[[list(gang) for gang in unit], since] for unit, since in sorted(heads.items())]
    content = {"claims": [written(claim) for claim in claims], "heads": waiting}
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


def load(content: bytes) -> tuple[list[Claim], dict[Unit, int]]:
    """What ``dump`` wrote."""
    data = json.loads(content)
    heads = {_unit(unit): int(since) for unit, since in data["heads"]}
    return [read(item) for item in data["claims"]], heads


def _unit(data: Iterable[Iterable[str]]) -> Unit:
    return tuple(GroupId(*gang) for gang in data)
