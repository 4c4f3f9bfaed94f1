"""What queues have used lately, kept in their status, so that a restart knows as much as who went on.

An average is brought up to date where use changes: between two such moments use was constant, and the average at any later
moment follows from what the status says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube import Manifest, parse_time
from kube.times import rfc3339_micro
from resources import Amounts, QuantityError, format_amounts, parse_amounts
from resources.decay import averaged

SAMPLE_MS = 300_000
"""Kueue's sampling interval: present use counts as if it went on for so long, so that who was just served stands behind."""


@dataclass(frozen=True, slots=True)
class PastUse:
    """The average use of a queue at the moment ``at``, in milliseconds since the epoch, and what it ``used`` from then on."""

    amounts: Amounts = field(default_factory=dict)
    at: int = 0
    used: Amounts = field(default_factory=dict)

    def later(self, now: int, half_life_ms: int) -> Amounts:
        """The average now; a queue that was never looked at begins with nothing."""
        return averaged(self.amounts, self.used, now - self.at if self.at else 0, half_life_ms)

    def soon(self, holds: Mapping[str, int], now: int, half_life_ms: int) -> Amounts:
        """The average that orders queues: as it will be when what it ``holds`` is held for one sampling interval more."""
        return averaged(self.later(now, half_life_ms), holds, SAMPLE_MS, half_life_ms)


def read_past_use(part: Any, used: Amounts) -> PastUse:
    """As ``past_use_part`` wrote it, together with what was ``used`` from then on; nothing for what makes no sense."""
    if not isinstance(part, dict):
        return PastUse(used=used)
    try:
        amounts = parse_amounts(part.get("consumedResources") or {})
        return PastUse(amounts, parse_time(str(part.get("lastUpdate"))), used)
    except (QuantityError, ValueError):
        return PastUse(used=used)


def past_use_part(before: PastUse, now: int, half_life_ms: int) -> Manifest:
    """The part of a status, in Kueue's words, as a merge patch over what said ``before``."""
    after = format_amounts(before.later(now, half_life_ms))
    return {"consumedResources": dict.fromkeys(before.amounts) | after, "lastUpdate": rfc3339_micro(now)}
