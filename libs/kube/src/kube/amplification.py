"""Amplified amounts: a node gives out more than it has, by the ratios of its annotation.

Source: Koordinator's ``pkg/webhook/node/plugins/resourceamplification``: whoever stores a node's status stores the amplified amounts, and
keeps what was reported in an annotation.
"""

import json
from collections.abc import Mapping
from typing import Any

from kube.json_text import read_json
from kube.keys import Manifest
from resources import QuantityError, parse_milli, parse_nano
from resources.amounts import format_amount, parse_amounts

RATIOS = "node.koordinator.sh/resource-amplification-ratio"
RAW = "node.koordinator.sh/raw-allocatable"
WHOLE_MILLI = 1000


def amplified(
    annotations: Mapping[str, str], allocatable: Manifest, reported: Manifest
) -> tuple[dict[str, str | None], Manifest]:
    """What has to change: of the annotations (None: gone), and of ``allocatable``; nothing where all is as it should be.

    ``reported`` is what the node itself has just said to have; of all else it has what the annotation keeps, or else
    ``allocatable`` as it is. Amounts that no ratio is about any more are again what the node has.
    """
    ratios = {name: milli for name, milli in _ratios(annotations.get(RATIOS)).items() if name in allocatable}
    kept = _mapping(annotations.get(RAW))
    raw = {name: reported.get(name, kept.get(name, allocatable.get(name))) for name in {*ratios, *kept}}
    try:
        wanted = {name: _times(name, amount, ratios.get(name, WHOLE_MILLI)) for name, amount in sorted(raw.items())}
    except QuantityError:
        return {}, {}
    told = json.dumps({name: raw[name] for name in sorted(ratios)}, separators=(",", ":")) if ratios else None
    changed = {name: amount for name, amount in wanted.items() if _differ(amount, allocatable.get(name))}
    return ({} if told == annotations.get(RAW) else {RAW: told}), changed


def _ratios(text: str | None) -> dict[str, int]:
    """The ratios above one, in thousandths."""
    found: dict[str, int] = {}
    for name, ratio in _mapping(text).items():
        try:
            milli = parse_milli(ratio)
        except QuantityError:
            continue
        if milli > WHOLE_MILLI:
            found[name] = milli
    return found


def _times(name: str, amount: Any, milli: int) -> str:
    return format_amount(name, parse_amounts({name: amount})[name] * milli // WHOLE_MILLI)


def _differ(amount: str, other: Any) -> bool:
    return other is None or parse_nano(amount) != parse_nano(other)


def _mapping(text: str | None) -> dict[str, Any]:
    try:
        found = read_json(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
