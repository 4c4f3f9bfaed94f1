"""NodeSLOs: under which rules the pods of a node live together, made from the strategies that hold on it.

An object that a user wrote, or changed after it was made here, is left alone: what is computed bears a mark of its content, and
whose content is another's bears a wrong one, or none.
"""

import hashlib
import json
from dataclasses import dataclass

from kube import Decision, Key, Manifest, Mutation, Object, Verb
from kube.merge import replacement
from kube.node_slo import EXTENSIONS, NODE_SLO, REPORT_INTERVAL, overlaid
from slo_controller.domain.configuration.config_map import Configuration
from slo_controller.domain.configuration.parts import COLOCATION, COLOCATION_KEY, HOST_APPLICATIONS, PARTS
from slo_controller.domain.lending.rule import rule_on
from slo_controller.domain.names import NETWORK_BANDWIDTH

COMPUTED = "NodeSLOComputed"
MARK = "tidegate.dev/computed"
"""The annotation of a NodeSLO that is made here: a digest of its spec."""
FIELDS = {key: part.field for key, part in PARTS.items() if part.field}
SYSTEM = "systemStrategy"


@dataclass(frozen=True, slots=True)
class NodeSLOs:
    """Makes the NodeSLOs of what is configured. A node of which nothing is lent gets none where nobody has configured anything.

    One that was made stays with its node: without a word of anybody any more it has the defaults, all of it switched off.
    """

    configuration: Configuration
    base: Manifest
    """The spec that an operator chose at the start, where the ConfigMap says nothing else."""

    def is_wanted(self, node: Object) -> bool:
        """Whether anybody has said anything about rules, sense or not, or lends of ``node``: pods of others come to it then."""
        configuration = self.configuration
        configured = bool(self.base) or not FIELDS.keys().isdisjoint({*configuration.accepted, *configuration.refused})
        return configured or rule_on(node, configuration.strategies[COLOCATION_KEY]).enabled

    def spec(self, node: Object) -> Manifest:
        """What holds on ``node``."""
        strategies = self.configuration.strategies
        spec = dict(self.base)
        for key, name in FIELDS.items():
            strategy = strategies[key].on(node.labels)
            spec[name] = strategy.get("applications") or [] if name == HOST_APPLICATIONS else strategy
        if interval := self._report_interval(node):
            spec[EXTENSIONS] = {REPORT_INTERVAL: interval}
        if bandwidth := node.annotations.get(NETWORK_BANDWIDTH):
            spec[SYSTEM] = overlaid(spec[SYSTEM], {"totalNetworkBandwidth": bandwidth})
        return spec

    def _report_interval(self, node: Object) -> int | None:
        """How often the node is to tell what it used; None leaves it to its agent, as the default does."""
        seconds = self.configuration.strategies[COLOCATION_KEY].on(node.labels).get(REPORT_INTERVAL)
        return int(seconds) if seconds and seconds != COLOCATION[REPORT_INTERVAL] else None

    def decide(self, node: Object, there: Object | None) -> Decision | None:
        """What has to become of the NodeSLO of ``node``, of which ``there`` is the present one."""
        if there is not None and (there.deleting or not is_computed(there)):
            return None
        if there is None and not self.is_wanted(node):
            return None
        spec = self.spec(node)
        if there is not None and there.spec == spec:
            return None
        return _made(node, spec) if there is None else _changed(there, spec)


def is_computed(slo: Object) -> bool:
    """Whether nobody else has written the object, or changed what it says."""
    return slo.annotations.get(MARK) == digest(slo.spec)


def digest(spec: Manifest) -> str:
    """The mark of a spec."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _made(node: Object, spec: Manifest) -> Decision:
    key = Key(NODE_SLO, "", node.name)
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
    manifest = {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeSLO",
        "metadata": {"name": node.name, "annotations": {MARK: digest(spec)}, "ownerReferences": [owner]},
        "spec": spec,
    }
    return Decision(
        COMPUTED,
        key,
        reason="StrategyHolds",
        message=f"the rules of node {node.name} are those of the strategies that select it",
        mutations=(Mutation(Verb.CREATE, key, manifest=manifest),),
    )


def _changed(there: Object, spec: Manifest) -> Decision:
    spec_patch = replacement(there.spec, spec)
    patch = {"metadata": {"annotations": {MARK: digest(spec)}}, "spec": spec_patch}
    return Decision(
        COMPUTED,
        there.key,
        there.uid,
        "StrategyChanged",
        f"the rules of node {there.name} follow the strategies: {', '.join(sorted(spec_patch))}",
        (Mutation(Verb.PATCH, there.key, there.uid, patch=patch),),
    )
