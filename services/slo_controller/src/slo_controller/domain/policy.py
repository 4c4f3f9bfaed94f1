"""What an operator chose when the service was started: what holds under the ConfigMap."""

from dataclasses import dataclass, field

from kube import Manifest
from slo_controller.domain.configuration.checks import check
from slo_controller.domain.configuration.parts import COLOCATION, NODE_SLO


@dataclass(frozen=True, slots=True)
class SloPolicy:
    """``colocation`` has the keys of ``colocation-config``, ``node_slo`` those of the spec of a NodeSLO."""

    colocation: Manifest = field(default_factory=dict)
    node_slo: Manifest = field(default_factory=dict)

    @classmethod
    def of(cls, colocation: Manifest, node_slo: Manifest) -> "SloPolicy":
        """Checked; raises ValueError, naming the field that is wrong."""
        check(colocation, COLOCATION, "colocation")
        check(node_slo, NODE_SLO, "node_slo")
        return cls(colocation, node_slo)
