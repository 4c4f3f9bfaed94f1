"""Arguments of the strategies of Kubernetes' descheduler and of Koordinator's, by their names there; and of defragmentation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from descheduler.domain.policy.argument_forms import (
    Reader,
    anything,
    eviction_order,
    exactly,
    map_of_numbers,
    nodes_only,
    number,
    one_of,
    texts,
    truth,
    whole,
    wholes,
)
from descheduler.domain.policy.arguments import known, percentages
from descheduler.domain.policy.scope import EVERYTHING, Scope
from kube import Manifest, Object
from kube.selectors import matches

Form = TypeVar("Form")
CALCULATE, EVICT = "CalculateOnly", "EvictDirectly"
BEST_EFFORT, DRAIN = "BestEffort", "DrainNode"
_COMMON: Mapping[str, Reader] = {
    **dict.fromkeys(("namespaces", "labelSelector", "thresholdPriority", "priorityThreshold"), anything),
    **dict.fromkeys(("evictableNamespaces", "podSelectors", "nodeSelector"), anything),
    **dict.fromkeys(("paused", "dryRun"), truth),
    "nodeFit": exactly(True, "nobody is moved without a place"),
}
KNOWN: Mapping[str, Mapping[str, Reader]] = {
    "RemoveFailedPods": {
        "reasons": texts,
        "exitCodes": wholes,
        "excludeOwnerKinds": texts,
        "minPodLifetimeSeconds": whole,
        "includingInitContainers": truth,
    },
    "RemovePodsViolatingNodeTaints": {"includePreferNoSchedule": truth, "excludedTaints": texts},
    "RemovePodsViolatingNodeAffinity": {
        "nodeAffinityType": exactly(
            ["requiredDuringSchedulingIgnoredDuringExecution"], "what is only preferred moves nobody"
        )
    },
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemovePodsHavingTooManyRestarts": {
        "podRestartThreshold": whole,
        "includingInitContainers": truth,
        "states": texts,
    },
    "PodLifeTime": {"maxPodLifeTimeSeconds": whole, "states": texts, "includingInitContainers": truth},
    "RemoveDuplicates": {"excludeOwnerKinds": texts},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": texts},
    "Defragmentation": {"minWaitSeconds": whole, "maxMoves": whole, "maxCostPercent": whole},
    "LowNodeUtilization": {
        "thresholds": percentages,
        "targetThresholds": percentages,
        "useDeviationThresholds": truth,
        "numberOfNodes": whole,
        "evictionLimits": nodes_only,
    },
    "HighNodeUtilization": {"thresholds": percentages, "numberOfNodes": whole},
    "CustomPriority": {
        "evictionOrder": eviction_order,
        "mode": one_of(BEST_EFFORT, DRAIN),
        "autoCordon": exactly(False, "nodes are closed by `kubectl cordon`, not by this service"),
    },
    "FragmentationAware": {"resources": texts, "imbalanceThreshold": number, "minImprovementThreshold": number},
    "ScaleDownBinPack": {
        "strategy": one_of(CALCULATE, EVICT),
        "maxPodsToEvict": whole,
        "resources": texts,
        "resourceWeights": map_of_numbers,
    },
}
"""What each knows besides the common arguments, in the order in which they have their turn."""


@dataclass(frozen=True, slots=True)
class StrategyArgs:
    """``given`` are the arguments as they were read; ``scope`` the pods that are looked at, ``selector`` the nodes."""

    scope: Scope = EVERYTHING
    given: Manifest | None = None
    selector: Manifest | None = None

    def whole(self, name: str, default: int) -> int:
        """An argument that is a number."""
        return int((self.given or {}).get(name, default))

    def truth(self, name: str) -> bool:
        """An argument that is true or false; false where it is not given."""
        return bool((self.given or {}).get(name, False))

    def words(self, name: str) -> tuple[str, ...]:
        """An argument that is a list of texts."""
        return tuple(str(one) for one in (self.given or {}).get(name) or ())

    def get(self, name: str, default: Form) -> Form:
        """An argument of the form of its default."""
        return cast(Form, (self.given or {}).get(name, default))

    def takes(self, node: Object) -> bool:
        """Whether a node is looked at."""
        return self.selector is None or matches(self.selector, node.labels)


def read_strategies(given: Manifest) -> dict[str, StrategyArgs]:
    """Those that are on. Raises ValueError for what there is not."""
    known(given, KNOWN, "the descheduler")
    found = {name: _read(name, given[name] or {}) for name in KNOWN if name in given and given[name] is not False}
    return {name: args for name, args in found.items() if not args.truth("paused")}


def _read(name: str, given: Manifest | bool) -> StrategyArgs:
    """``true`` turns one on with no arguments."""
    said = {} if given is True else dict(given or {})
    forms = {**_COMMON, **KNOWN[name]}
    known(said, forms, name)
    read = {argument: _form(name, argument, forms[argument], value) for argument, value in said.items()}
    selectors = [said.get("labelSelector"), *(one.get("selector") for one in said.get("podSelectors") or ())]
    scope = Scope.of(
        said.get("namespaces") or said.get("evictableNamespaces"),
        selectors,
        said.get("thresholdPriority", said.get("priorityThreshold")),
    )
    return StrategyArgs(scope, read, said.get("nodeSelector"))


def _form(name: str, argument: str, reader: Reader, value: Any) -> Any:
    try:
        return reader(value)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{name}: {argument} is {value!r}: {error}") from None
