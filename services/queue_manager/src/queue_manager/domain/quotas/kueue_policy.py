"""What Kueue's Configuration chooses for the whole cluster: how long pods may take to get ready, how past use counts.

Source: ``waitForPodsReady`` and ``admissionFairSharing`` of Kueue's Configuration (config.kueue.x-k8s.io/v1beta2).
"""

from dataclasses import dataclass, field
from typing import Any

from kube import Manifest, parse_duration
from resources import QuantityError, parse_milli

EVICTION, CREATION = "Eviction", "Creation"


@dataclass(frozen=True, slots=True)
class KueuePolicy:
    """Times in milliseconds. Nothing here is at work unless it is chosen.

    ``ready_ms`` is how long all pods of admitted work may take to get ready (0: for ever), ``recovery_ms`` the same for one
    that was ready before; ``block`` admits nobody else meanwhile. Work that failed to get ready comes back after ``base_ms``,
    twice as long after each further time, ``longest_ms`` at the most; after ``limit`` times (None: no limit) it is
    deactivated. ``half_life_ms`` turns the order by past use on (0: off): what a LocalQueue or queue used counts half after
    that time; ``weights`` of resources in thousandths.
    """

    ready_ms: int = 0
    recovery_ms: int = 0
    block: bool = False
    timestamp: str = EVICTION
    limit: int | None = None
    base_ms: int = 60_000
    longest_ms: int = 3_600_000
    half_life_ms: int = 0
    weights: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, configuration: Manifest) -> "KueuePolicy":
        """Read the parts of a Configuration; raises ValueError for what makes no sense and for unknown fields."""
        _known("", configuration, ("waitForPodsReady", "admissionFairSharing"))
        waits = configuration.get("waitForPodsReady") or {}
        fields = ("enable", "timeout", "recoveryTimeout", "blockAdmission", "requeuingStrategy")
        _known("waitForPodsReady", waits, fields)
        again = waits.get("requeuingStrategy") or {}
        names = ("timestamp", "backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds")
        _known("waitForPodsReady.requeuingStrategy", again, names)
        shares = configuration.get("admissionFairSharing") or {}
        _known("admissionFairSharing", shares, ("usageHalfLifeTime", "usageSamplingInterval", "resourceWeights"))
        timestamp = str(again.get("timestamp") or EVICTION)
        if timestamp not in (EVICTION, CREATION):
            raise ValueError(f"requeuingStrategy.timestamp {timestamp!r} is neither {EVICTION} nor {CREATION}")
        on = bool(waits) and waits.get("enable") is not False
        return cls(
            _duration("timeout", waits.get("timeout"), 1_800_000) if on else 0,
            _duration("recoveryTimeout", waits.get("recoveryTimeout"), 0) if on else 0,
            on and waits.get("blockAdmission") is True,
            timestamp,
            _count("backoffLimitCount", again.get("backoffLimitCount")),
            1000 * (_count("backoffBaseSeconds", again.get("backoffBaseSeconds")) or 60),
            1000 * (_count("backoffMaxSeconds", again.get("backoffMaxSeconds")) or 3600),
            _duration("usageHalfLifeTime", shares.get("usageHalfLifeTime"), 0),
            {str(name): _weight(name, value) for name, value in (shares.get("resourceWeights") or {}).items()},
        )

    def backoff_ms(self, attempts: int) -> int:
        """How long work stays away after it was sent away for the ``attempts``-th time."""
        return min(self.base_ms << min(max(0, attempts - 1), 30), self.longest_ms)


def _known(path: str, part: Any, names: tuple[str, ...]) -> None:
    if not isinstance(part, dict):
        raise ValueError(f"{path or 'the configuration'} must be a mapping of fields")
    for name in part:
        if name not in names:
            raise ValueError(f"{path + '.' if path else ''}{name}: no such field; there are {', '.join(names)}")


def _duration(name: str, value: Any, default: int) -> int:
    try:
        return default if value is None else parse_duration(str(value))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name}: {value!r} is no number of 0 or more")
    return value


def _weight(name: str, value: Any) -> int:
    try:
        weight = parse_milli(value)
    except QuantityError as error:
        raise ValueError(f"resourceWeights.{name}: {error}") from None
    if weight < 0:
        raise ValueError(f"resourceWeights.{name}: {value!r} is no number of 0 or more")
    return weight
