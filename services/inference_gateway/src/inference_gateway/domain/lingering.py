"""Clusters that no route leads to any more stay a while: requests may be on their way to them, and come to wait there."""

from dataclasses import dataclass, field

from inference_gateway.domain.configuration import Configuration
from inference_gateway.domain.envoy.clusters import Place, waiting_endpoints
from inference_gateway.domain.envoy.layout import Layout
from kube import Manifest

LINGER_SECONDS = 60.0


@dataclass(slots=True)
class Lingering:
    """The clusters that are told, and since when those are unused that nobody needs."""

    layout: Layout
    clusters: dict[str, Manifest] = field(default_factory=dict)
    unused: dict[str, float] = field(default_factory=dict)

    def add(self, told: Configuration, now: float) -> tuple[list[Manifest], dict[str, tuple[Place, ...]]]:
        """All clusters by name, and the endpoints of each; ``now`` is of any clock in seconds."""
        for name in self.clusters.keys() - told.clusters.keys():
            self.unused.setdefault(name, now)
        for name in [*self.unused]:
            if name in told.clusters or now - self.unused[name] > LINGER_SECONDS:
                del self.unused[name]
        lingering = {name: self.clusters[name] for name in self.unused}
        self.clusters = {**lingering, **told.clusters}
        listed = [self.clusters[name] for name in sorted(self.clusters)]
        return listed, {**dict.fromkeys(lingering, waiting_endpoints(self.layout)), **told.endpoints}
