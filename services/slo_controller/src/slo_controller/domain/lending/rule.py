"""The rule of lending that holds on one node: the cluster's, that of some nodes, and what the node says itself."""

from dataclasses import dataclass, replace

from kube import Manifest, Object
from kube.json_text import read_json
from kube.node_slo import overlaid
from resources import QuantityError, parse_milli
from slo_controller.domain.configuration.checks import check
from slo_controller.domain.configuration.parts import COLOCATION
from slo_controller.domain.configuration.strategy import Strategy
from slo_controller.domain.names import OPT_IN, RATIOS, STRATEGY


@dataclass(frozen=True, slots=True)
class Reclaim:
    """Of cpu, or of memory. ``threshold`` and caps are percent of capacity; a ``batch_cap`` of None is none."""

    threshold: int
    policy: str
    batch_cap: int | None
    mid_cap: int
    mid_static: int


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds on a node. ``difference_milli`` is the share of a change that is worth writing at once, in thousandths."""

    enabled: bool
    cpu: Reclaim
    memory: Reclaim
    mid_unallocated: int
    degrade_ms: int
    refresh_ms: int
    difference_milli: int
    complaints: tuple[str, ...] = ()
    """What of the node's own words makes no sense and does not count."""

    def of(self, name: str) -> Reclaim:
        return self.cpu if name == "cpu" else self.memory


def rule_on(node: Object, strategy: Strategy) -> Rule:
    """The rule on ``node``: the strategy of the ConfigMap under the node's annotation, and both under its labels."""
    whole, complaints = dict(strategy.on(node.labels)), []
    try:
        own = read_json(node.annotations.get(STRATEGY) or "{}")
        check(own, COLOCATION, STRATEGY)
        whole = overlaid(whole, own)
    except ValueError as error:
        complaints.append(f"annotation {STRATEGY} does not count: {error}")
    for label, name in RATIOS.items():
        if (text := node.labels.get(label)) is not None:
            percent = _percent(text)
            if percent is None:
                complaints.append(f"label {label} does not count: {text!r} is no share such as 0.8")
            else:
                whole[name] = percent
    if node.labels.get(OPT_IN) in ("true", "false"):
        whole["enable"] = node.labels[OPT_IN] == "true"
    return replace(_rule(whole), complaints=tuple(complaints))


def _percent(text: str) -> int | None:
    """``0.8`` as 80."""
    try:
        share = parse_milli(text)
    except QuantityError:
        return None
    return share // 10 if share >= 0 else None


def _rule(whole: Manifest) -> Rule:
    return Rule(
        whole["enable"],
        _reclaim(whole, "cpu", "CPU"),
        _reclaim(whole, "memory", "Memory"),
        whole["midUnallocatedPercent"],
        60_000 * whole["degradeTimeMinutes"],
        1000 * whole["updateTimeThresholdSeconds"],
        round(1000 * whole["resourceDiffThreshold"]),
    )


def _reclaim(whole: Manifest, name: str, title: str) -> Reclaim:
    return Reclaim(
        whole[f"{name}ReclaimThresholdPercent"],
        whole[f"{name}CalculatePolicy"],
        whole.get(f"batch{title}ThresholdPercent"),
        whole[f"mid{title}ThresholdPercent"],
        whole[f"midStatic{title}ReservedPercent"],
    )
