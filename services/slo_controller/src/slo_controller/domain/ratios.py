"""Ratios of nodes: how much more a core does than the one that all are measured by, and how much more is given out than there is.

Source: Koordinator's ``pkg/slo-controller/noderesource/plugins/{cpunormalization,resourceamplification}``.
"""

import json
from dataclasses import dataclass

from kube import Decision, Manifest, Mutation, Object, Verb
from kube.amplification import RATIOS
from kube.json_text import read_json
from kube.normalization import NORMALIZATION, PLAIN_MILLI, core_milli
from resources import parse_milli
from slo_controller.domain.configuration.config_map import Configuration
from slo_controller.domain.names import CPU_INFO, NORMALIZED

NORMALIZING, AMPLIFYING = "cpu-normalization-config", "resource-amplification-config"
DECIDED = "NodeRatiosComputed"


@dataclass(frozen=True, slots=True)
class Ratios:
    """What the configuration makes of nodes. Without a word of it their annotations are whoever's who wrote them."""

    configuration: Configuration

    def decide(self, node: Object, topology: Object | None) -> Decision | None:
        """What is to be written on ``node``; ``topology`` is its NodeResourceTopology, which may say what CPU it has."""
        wanted: dict[str, str | None] = {}
        ratio = self.normalization(node, topology)
        if isinstance(ratio, int):
            wanted[NORMALIZATION] = f"{ratio // 1000}.{ratio % 1000 // 10:02d}"
        if AMPLIFYING in self.configuration.accepted:
            wanted[RATIOS] = self._amplification(node, wanted.get(NORMALIZATION))
        changed = {name: text for name, text in wanted.items() if node.annotations.get(name) != text}
        if not changed:
            return None
        words = "; ".join(f"{name.rpartition('/')[2]} {text or 'none'}" for name, text in changed.items())
        mutation = Mutation(Verb.PATCH, node.key, node.uid, patch={"metadata": {"annotations": changed}})
        return Decision(DECIDED, node.key, node.uid, "RatiosConfigured", words, (mutation,))

    def normalization(self, node: Object, topology: Object | None) -> int | str | None:
        """How much a core of ``node`` does, in thousandths; or why that cannot be told, and the node keeps what it has.

        None where nobody has configured anything.
        """
        if NORMALIZING not in self.configuration.accepted:
            return None
        strategy = self.configuration.strategies[NORMALIZING].on(node.labels)
        own = node.labels.get(NORMALIZED)
        if not (own == "true" if own in ("true", "false") else strategy["enable"]):
            return PLAIN_MILLI
        info = _mapping(node.annotations.get(CPU_INFO) or (topology.annotations.get(CPU_INFO) if topology else None))
        model = str(info.get("cpuModel") or "")
        name = _which(bool(info.get("hyperThreadEnabled")), bool(info.get("turboEnabled")))
        ratio = (strategy["ratioModel"].get(model) or {}).get(name, strategy.get("defaultRatio"))
        if ratio is None:
            return f"cpu is not normalised: the configuration has no {name} of the model {model!r}"
        return parse_milli(ratio)

    def _amplification(self, node: Object, normalization: str | None) -> str | None:
        strategy = self.configuration.strategies[AMPLIFYING].on(node.labels)
        if not strategy["enable"]:
            return None
        ratios = {name: parse_milli(value) for name, value in strategy["resourceAmplificationRatio"].items()}
        cores = core_milli({**node.annotations, **({NORMALIZATION: normalization} if normalization else {})})
        ratios["cpu"] = ratios.get("cpu", PLAIN_MILLI) * cores // 1000
        told = {name: ratio / 1000 for name, ratio in sorted(ratios.items()) if ratio > PLAIN_MILLI}
        return json.dumps(told, separators=(",", ":")) if told else None


def _which(hyper_threads: bool, turbo: bool) -> str:
    """Which of a model's ratios holds on a node."""
    names = {(False, False): "baseRatio", (False, True): "turboEnabledRatio", (True, False): "hyperThreadEnabledRatio"}
    return names.get((hyper_threads, turbo), "hyperThreadTurboEnabledRatio")


def _mapping(text: str | None) -> Manifest:
    try:
        found = read_json(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
