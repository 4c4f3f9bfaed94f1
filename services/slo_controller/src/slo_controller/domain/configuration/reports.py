"""Telling that the ConfigMap holds what makes no sense: once for each such content."""

import hashlib
from dataclasses import dataclass, field

from kube import Decision, Object
from slo_controller.domain.configuration.config_map import Configuration

REFUSED = "SloConfigRefused"


@dataclass(slots=True)
class Refusals:
    """``told`` are digests of the refused contents that were told, by key."""

    configuration: Configuration
    told: dict[str, str] = field(default_factory=dict)

    def decide(self, config_map: Object | None) -> list[Decision]:
        """What is to be told of ``config_map`` that was not told before."""
        refused = self.configuration.refused
        self.told = {key: mark for key, mark in self.told.items() if key in refused}
        new = {key: why for key, (text, why) in refused.items() if self.told.get(key) != _digest(text)}
        if config_map is None or not new:
            return []
        self.told |= {key: _digest(refused[key][0]) for key in new}
        words = "; ".join(f"{key}: {new[key]}{_in_force(self.configuration, key)}" for key in sorted(new))
        return [Decision(REFUSED, config_map.key, config_map.uid, "ConfigInvalid", words)]


def _in_force(configuration: Configuration, key: str) -> str:
    last = "the content before it" if key in configuration.accepted else "the default"
    return f" ({last} stays in force)"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
