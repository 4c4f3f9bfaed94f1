"""Arguments of the strategies of Kubernetes' descheduler, by their names there; and of defragmentation."""

from collections.abc import Mapping
from dataclasses import dataclass

from descheduler.domain.policy.arguments import known
from descheduler.domain.policy.scope import EVERYTHING, Scope
from kube import Manifest

_COMMON = ("namespaces", "labelSelector", "thresholdPriority")
KNOWN: Mapping[str, tuple[str, ...]] = {
    "RemoveFailedPods": (
        "reasons",
        "exitCodes",
        "excludeOwnerKinds",
        "minPodLifetimeSeconds",
        "includingInitContainers",
    ),
    "RemovePodsViolatingNodeTaints": ("includePreferNoSchedule", "excludedTaints"),
    "RemovePodsViolatingNodeAffinity": (),
    "RemovePodsViolatingInterPodAntiAffinity": (),
    "RemovePodsHavingTooManyRestarts": ("podRestartThreshold", "includingInitContainers", "states"),
    "PodLifeTime": ("maxPodLifeTimeSeconds", "states", "includingInitContainers"),
    "RemoveDuplicates": ("excludeOwnerKinds",),
    "RemovePodsViolatingTopologySpreadConstraint": ("constraints",),
    "Defragmentation": ("minWaitSeconds", "maxMoves", "maxCostPercent"),
}
"""What each knows besides the common keys, in the order in which they have their turn."""


@dataclass(frozen=True, slots=True)
class StrategyArgs:
    """``given`` are the arguments as they were written; ``scope`` the pods that are looked at."""

    scope: Scope = EVERYTHING
    given: Manifest | None = None

    def whole(self, name: str, default: int) -> int:
        """An argument that is a number."""
        return int((self.given or {}).get(name, default))

    def truth(self, name: str) -> bool:
        """An argument that is true or false; false where it is not given."""
        return bool((self.given or {}).get(name, False))

    def words(self, name: str) -> tuple[str, ...]:
        """An argument that is a list of texts."""
        return tuple(str(one) for one in (self.given or {}).get(name) or ())


def read_strategies(given: Manifest) -> dict[str, StrategyArgs]:
    """Those that are on. Raises ValueError for what there is not."""
    known(given, KNOWN, "the descheduler")
    return {name: _read(name, given[name] or {}) for name in KNOWN if name in given and given[name] is not False}


def _read(name: str, given: Manifest | bool) -> StrategyArgs:
    """``true`` turns one on with no arguments."""
    said = {} if given is True else dict(given or {})
    known(said, (*_COMMON, *KNOWN[name]), name)
    scope = Scope.of(said.get("namespaces"), [said.get("labelSelector")], said.get("thresholdPriority"))
    return StrategyArgs(scope, said)
