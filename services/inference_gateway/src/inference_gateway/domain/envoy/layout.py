"""Where the proxy and the service meet: sockets in one folder, and names that both know."""

from dataclasses import dataclass

from inference_gateway.domain.serving.replica import Pool

HOLD, AGAIN, ACTIVATOR, DIRECTORY, SETTINGS = "hold", "again", "activator", "directory", "settings"
"""Clusters: where requests wait, where those that waited start again, who says when, who says where replicas are, and who says
which clusters and routes there are."""
SHARE = "x-tidegate-share"
"""Header with the number that decides who gets a request (`Component.choose`): the proxy counts from 0 to 99."""
ASKED = "x-tidegate-asked"
"""Header with the host that was asked, where the proxy put the model's in its place."""
LATER = 425
"""What the activator says for 503: a 5xx would be a failure of its own."""
HELD = "x-tidegate-held"
"""Header of requests that have waited: how often."""
ROUTES = "routes"
PUBLIC = "public"
"""Prefix of the statistics of the listener that everybody uses."""


@dataclass(frozen=True, slots=True)
class Layout:
    """``sockets`` is the folder of its sockets: their paths may not be longer than 107 bytes."""

    sockets: str

    @property
    def admin(self) -> str:
        return f"{self.sockets}/admin.sock"

    def socket(self, cluster: str) -> str:
        """Of one of these clusters."""
        return f"{self.sockets}/{cluster}.sock"


def cluster_name(pool: Pool, *, grpc: bool = False) -> str:
    """The cluster of a pool's replicas: no name of Kubernetes has a ``_``."""
    return f"{pool[0]}_{pool[1]}{'_grpc' if grpc else ''}"


def pool_of_cluster(name: str) -> Pool | None:
    """The pool whose replicas ``name`` has; None for other clusters."""
    words = name.split("_")
    return (words[0], words[1]) if len(words) > 1 else None
