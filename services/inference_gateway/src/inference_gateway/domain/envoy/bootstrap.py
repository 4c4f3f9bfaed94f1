"""What the proxy is started with; all that changes while it runs it asks for."""

from collections.abc import Sequence

from inference_gateway.domain.envoy.clusters import own_clusters
from inference_gateway.domain.envoy.layout import DIRECTORY, SETTINGS, Layout
from inference_gateway.domain.envoy.listeners import listeners
from inference_gateway.domain.envoy.types import asked_of, socket
from kube import Manifest

BOUNDS_MS = (5, 10, 25, 50, 100, 200, 300, 500, 750, 1000, 2000, 3000, 5000, 10_000, 30_000, 60_000)
"""Of the histograms of latency, whoever goes by them."""

_ENDPOINTS = {
    "api_type": "GRPC",
    "transport_api_version": "V3",
    "grpc_services": [
        {
            "envoy_grpc": {
                "cluster_name": DIRECTORY,
                "retry_policy": {"retry_back_off": {"base_interval": "0.05s", "max_interval": "0.5s"}},
            }
        }
    ],
}
"""Where the endpoints come from, of all clusters in one stream."""


def bootstrap(places: Sequence[tuple[str, int]], hold_seconds: int, layout: Layout) -> Manifest:
    """For a proxy that listens at ``places``, each a host and a port."""
    buckets = {"match": {"safe_regex": {"regex": ".*upstream_rq_time"}}, "buckets": list(BOUNDS_MS)}
    return {
        "node": {"id": "inference_gateway", "cluster": "tidegate"},
        "admin": {"address": socket(layout.admin)},
        "static_resources": {
            "listeners": listeners(places, hold_seconds, layout),
            "clusters": own_clusters(layout),
        },
        "dynamic_resources": {"cds_config": asked_of(SETTINGS), "ads_config": _ENDPOINTS},
        "stats_flush_interval": "1s",
        "stats_config": {"histogram_bucket_settings": [buckets]},
    }
