"""What no fact tells and a successor has to know: it is committed together with what was decided by it."""

import zlib
from dataclasses import dataclass, field

import orjson

from slo_controller.domain.configuration.config_map import Configuration
from slo_controller.domain.lending.steadiness import Lows
from slo_controller.domain.prediction.past_use import PastUse

FORMAT = 1
FAST = 1
"""The level of compression: a third of the size in a hundredth of a second for each megabyte."""


@dataclass(slots=True)
class Memory:
    """``minute`` is the last full minute (since the epoch) that was counted. ``changed`` says whether there is something to commit."""

    configuration: Configuration
    lows: Lows = field(default_factory=Lows)
    past: PastUse = field(default_factory=PastUse)
    evicted: dict[str, int] = field(default_factory=dict)
    """The evictions that were decided because a node asked: by the uid of the pod, when it had asked."""
    minute: int = 0
    changed: bool = False

    def dump(self) -> bytes:
        """All of it."""
        state = {
            "accepted": self.configuration.accepted,
            "format": FORMAT,
            "minute": self.minute,
            "evicted": self.evicted,
            "lows": self.lows.dump(),
            "past": self.past.dump(),
        }
        return zlib.compress(orjson.dumps(state, option=orjson.OPT_SORT_KEYS), FAST)

    def load(self, content: bytes) -> None:
        """Take up what was dumped. What an older version wrote in another form is learnt anew."""
        state = orjson.loads(zlib.decompress(content))
        if state.get("format") != FORMAT:
            return
        self.configuration.restore(state["accepted"])
        self.minute = int(state["minute"])
        self.evicted.clear()
        self.evicted.update(state["evicted"])
        self.lows.load(state["lows"])
        self.past = PastUse.load(state["past"])
