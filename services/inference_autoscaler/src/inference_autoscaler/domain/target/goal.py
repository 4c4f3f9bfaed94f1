"""What users should feel, in words: ``queue wait <= 1s``, ``p95 latency ≤ 300 ms``."""

import re
from dataclasses import dataclass

from kube import parse_duration

GOAL = "tidegate.dev/target"
"""Annotation of an InferenceService that says its goal."""
SPARE = "tidegate.dev/spare-replicas"
"""Annotation that says how many replicas are kept beyond what is needed, warm for whatever comes."""
SLOTS = "tidegate.dev/slots"
"""Annotation of an autoscaler with a goal: how many requests a replica of its target answers at once."""
AIMS = frozenset((GOAL, SPARE))
LATENCY, WAIT = "latency", "queue wait"
_WORDS = re.compile(
    r"\s*(?:p(\d{1,2}(?:\.\d)?)\s+)?(latency|queue wait)\s*(?:<=|≤|<)\s*([0-9.]+)\s*(ms|s|m)\s*", re.IGNORECASE
)
_ALL_PERMILLE = 1000


@dataclass(frozen=True, slots=True)
class Goal:
    """So many of a thousand requests have at most ``limit_ms`` of latency, or of waiting until they are begun."""

    measure: str
    limit_ms: int
    permille: int = _ALL_PERMILLE

    @classmethod
    def of(cls, text: str) -> "Goal":
        """Read it. Raises ValueError for words that are none."""
        found = _WORDS.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no target: such as 'queue wait <= 1s' or 'p95 latency <= 300ms'")
        share, measure, amount, unit = found.groups()
        limit = parse_duration(f"{amount}{unit.lower()}")
        if limit <= 0:
            raise ValueError(f"{text!r} is no target: its limit is not above zero")
        return cls(measure.lower(), limit, _permille(share))

    @property
    def late_permille(self) -> int:
        """How many of a thousand requests may be late."""
        return _ALL_PERMILLE - self.permille

    def wait_ms(self, service_us: int) -> int:
        """How long a request may wait that then takes ``service_us`` to be answered; 0 where it may not at all."""
        return self.limit_ms if self.measure == WAIT else max(0, self.limit_ms - service_us // 1000)

    def __str__(self) -> str:
        share = "" if self.permille == _ALL_PERMILLE else f"p{self.permille / 10:g} "
        return f"{share}{self.measure} ≤ {self.limit_ms} ms"


def _permille(share: str | None) -> int:
    if share is None:
        return _ALL_PERMILLE
    whole, _, tenth = share.partition(".")
    return int(whole) * 10 + int(tenth or 0)
