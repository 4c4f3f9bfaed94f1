"""The ConfigMap as it is in force: of each key the newest content that makes sense."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube import Key, Manifest, Object
from kube.node_slo import overlaid
from slo_controller.domain.configuration.parts import PARTS
from slo_controller.domain.configuration.strategy import Strategy, read_strategy

CONFIG_MAP = Key("ConfigMap", "koordinator-system", "slo-controller-config")


@dataclass(slots=True)
class Configuration:
    """``bases`` are what holds by key where the ConfigMap says nothing, in the place of the defaults.

    ``accepted`` are the contents in force and is what no fact tells once somebody has written what makes no sense; ``refused``
    says by key why what stands there now is none of them.
    """

    bases: Mapping[str, Manifest]
    accepted: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    strategies: dict[str, Strategy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in PARTS:
            self.strategies[key] = Strategy(self._base(key))

    def restore(self, accepted: Mapping[str, str]) -> None:
        """Take up what was in force when a predecessor decided last."""
        self.take(accepted)

    def fold(self, config_map: Object | None) -> bool:
        """Take in a new version of the ConfigMap, or that it is gone; whether something else is in force now."""
        data = (config_map.body.get("data") or {}) if config_map is not None else {}
        return self.take({key: str(text) for key, text in data.items() if key in PARTS})

    def take(self, data: Mapping[str, str]) -> bool:
        """Take in the contents by key; those that are left out say nothing any more."""
        changed = False
        for key in PARTS:
            changed |= self._take(key, data.get(key))
        return changed

    def _take(self, key: str, text: str | None) -> bool:
        self.refused.pop(key, None)
        if text == self.accepted.get(key):
            return False
        if text is None:
            del self.accepted[key]
            self.strategies[key] = Strategy(self._base(key))
            return True
        try:
            self.strategies[key] = read_strategy(text, PARTS[key], self._base(key))
        except ValueError as error:
            self.refused[key] = str(error)
            return False
        self.accepted[key] = text
        return True

    def _base(self, key: str) -> Manifest:
        return overlaid(PARTS[key].defaults, self.bases.get(key) or {})
