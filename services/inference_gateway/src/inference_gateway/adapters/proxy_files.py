"""What the proxy reads of clusters and routes: files, each moved to its place as a whole, and only when something of it changed."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import orjson

from inference_gateway.domain.configuration import Configuration
from inference_gateway.domain.envoy.clusters import Place, waiting_endpoints
from inference_gateway.domain.envoy.layout import PUBLIC, Layout
from kube import Manifest

_OF_CLUSTERS = "cluster_manager.cds.version_text"
LINGER_SECONDS = 60.0
"""How long a cluster stays that no route leads to any more: requests may be on their way to it."""


class ProxyFiles:
    """What has been written, by the statistics that say what the proxy has taken in."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.versions: dict[str, str] = {}
        """What the proxy should say by the name of a statistic: ``cluster_manager.cds.version_text`` and so on."""

        self._written: dict[Path, str] = {}
        self._clusters: dict[str, Manifest] = {}
        self._unused: dict[str, float] = {}

    def write_clusters(self, told: Configuration, now: float) -> dict[str, tuple[Place, ...]]:
        """The clusters; returns the endpoints of all. ``now`` is of any clock in seconds.

        Those that are not told any more stay a while: what is still on its way to them comes to wait.
        """
        for name in self._clusters.keys() - told.clusters.keys():
            self._unused.setdefault(name, now)
        for name in [*self._unused]:
            if name in told.clusters or now - self._unused[name] > LINGER_SECONDS:
                del self._unused[name]
        lingering = {name: self._clusters[name] for name in self._unused}
        self._clusters = {**lingering, **told.clusters}
        listed = [self._clusters[name] for name in sorted(self._clusters)]
        self._put(Path(self._layout.clusters), _OF_CLUSTERS, listed)
        if not listed:
            del self.versions[_OF_CLUSTERS]  # The proxy says nothing of a file that changed nothing.
        return {**dict.fromkeys(lingering, waiting_endpoints(self._layout)), **told.endpoints}

    def write_routes(self, told: Configuration) -> None:
        """The routes."""
        # Both listeners have one copy of them, counted with the first one's figures.
        self._put(Path(self._layout.routes), f"http.{PUBLIC}.rds.routes.version_text", [told.routes])

    def _put(self, path: Path, statistic: str, resources: Iterable[Manifest]) -> None:
        content = orjson.dumps(list(resources))
        version = sha256(content).hexdigest()[:16]
        self.versions[statistic] = version
        if self._written.get(path) == version:
            return
        fresh = path.with_suffix(".new")
        fresh.write_bytes(b'{"version_info":"%s","resources":%s}' % (version.encode(), content))
        fresh.replace(path)
        self._written[path] = version
