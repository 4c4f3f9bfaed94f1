"""Loads that come again: every ten minutes, every hour, every day. A season counts only while it forecasts better than persistence.

Persistence is to expect what is so now. A forecast never lets a size go down: it raises what is expected, or is not listened to.
"""

from dataclasses import dataclass, field

from kube import Manifest

MINUTE_MS = 60_000
PERIODS = ((10 * MINUTE_MS, 40), (60 * MINUTE_MS, 60), (24 * 60 * MINUTE_MS, 96))
"""How long each season is, and in how many parts it is remembered."""
_FADE = 16
"""Errors of so many spans ago count a third."""
_TRUSTED_PERMILLE = 800
"""A season is listened to while its error is at most so much of persistence's."""
_UNKNOWN = -1


@dataclass(slots=True)
class Season:
    """``levels`` are the loads of its parts when they were there last, in thousandths; -1 where none was yet.

    ``wrong`` and ``naive`` are sums of the errors of its forecasts, and of persistence's for the same times.
    """

    period: int
    levels: list[int]
    wrong: int = 0
    naive: int = 0

    def forecast(self, since: int, until: int) -> int | None:
        """The most that is to be expected between two times; None where a part of it was never there."""
        length = self.period // len(self.levels)
        parts = range(since // length, until // length + 1)
        found = [self.levels[part % len(self.levels)] for part in parts]
        return None if _UNKNOWN in found else max(found)

    def learn(self, end: int, level: int) -> None:
        """The load was ``level`` at ``end``."""
        length = self.period // len(self.levels)
        self.levels[end // length % len(self.levels)] = level

    def judge(self, told: int | None, before: int, level: int) -> None:
        """It had told ``told`` where ``before`` was so, and ``level`` came."""
        if told is None:
            return
        self.wrong += abs(told - level) - self.wrong // _FADE
        self.naive += abs(before - level) - self.naive // _FADE

    @property
    def is_trusted(self) -> bool:
        """Whether it did better than persistence so far."""
        return self.naive > 0 and self.wrong * 1000 <= self.naive * _TRUSTED_PERMILLE


@dataclass(slots=True)
class Seasons:
    """All of them. ``told`` are their forecasts that were not yet judged: for when, what was so then, and what each said."""

    listed: list[Season] = field(
        default_factory=lambda: [Season(period, [_UNKNOWN] * parts) for period, parts in PERIODS]
    )
    told: list[tuple[int, int, tuple[int | None, ...]]] = field(default_factory=list)

    def learn(self, end: int, level: int, ahead: int) -> None:
        """The load was ``level`` at ``end``; what was foretold of it is judged, and what comes in ``ahead`` milliseconds foretold."""
        for when, before, said in self.told:
            if when <= end:
                for season, told in zip(self.listed, said, strict=True):
                    season.judge(told, before, level)
        said = tuple(season.forecast(end + ahead, end + ahead) for season in self.listed)
        self.told = [one for one in self.told if one[0] > end] + [(end + ahead, level, said)]
        for season in self.listed:
            season.learn(end, level)

    def floor(self, since: int, until: int) -> tuple[int, int]:
        """The most that a trusted season forecasts between two times, and how long the season is; zeros where none does."""
        found = [(season.forecast(since, until) or 0, season.period) for season in self.listed if season.is_trusted]
        return max(found, default=(0, 0))

    def manifest(self) -> Manifest:
        """As it is written down."""
        listed = [[season.levels, season.wrong, season.naive] for season in self.listed]
        return {"listed": listed, "told": [[when, before, [*said]] for when, before, said in self.told]}

    @classmethod
    def of(cls, told: Manifest) -> "Seasons":
        """As it was written down."""
        listed = [
            Season(period, [*levels], wrong, naive)
            for (period, _), (levels, wrong, naive) in zip(PERIODS, told["listed"], strict=True)
        ]
        return cls(listed, [(when, before, tuple(said)) for when, before, said in told["told"]])
