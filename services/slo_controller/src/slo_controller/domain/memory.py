"""What no fact tells and a successor has to know: it is committed together with what was decided by it."""

from dataclasses import dataclass, field

import orjson

from slo_controller.domain.configuration.config_map import Configuration
from slo_controller.domain.configuration.reports import Refusals
from slo_controller.domain.lending.steadiness import Lows
from slo_controller.domain.prediction.past_use import PastUse


@dataclass(slots=True)
class Memory:
    """``minute`` is the last full minute (since the epoch) that was counted. ``changed`` says whether there is something to commit."""

    configuration: Configuration
    refusals: Refusals
    lows: Lows = field(default_factory=Lows)
    past: PastUse = field(default_factory=PastUse)
    minute: int = 0
    changed: bool = False

    def dump(self) -> bytes:
        """All of it."""
        state = {
            "accepted": self.configuration.accepted,
            "told": self.refusals.told,
            "minute": self.minute,
            "lows": self.lows.dump(),
            "past": self.past.dump(),
        }
        return orjson.dumps(state, option=orjson.OPT_SORT_KEYS)

    def load(self, content: bytes) -> None:
        """Take up what was dumped."""
        state = orjson.loads(content)
        self.configuration.restore(state["accepted"])
        self.refusals.told = dict(state["told"])
        self.minute = int(state["minute"])
        self.lows.load(state["lows"])
        self.past = PastUse.load(state["past"])
