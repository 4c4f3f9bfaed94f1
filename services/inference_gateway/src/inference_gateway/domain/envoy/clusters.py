"""The clusters: the replicas of a pool for HTTP/1.1 and for gRPC, and the proxy's own sockets."""

from collections.abc import Sequence
from typing import NamedTuple

from inference_gateway.domain.envoy.layout import ACTIVATOR, AGAIN, DIRECTORY, HOLD, SETTINGS, Layout, cluster_name
from inference_gateway.domain.envoy.types import assignment, extension, seconds, socket, typed
from inference_gateway.domain.serving.replica import Pool, Replica
from kube import Manifest

CLUSTER = "envoy.config.cluster.v3.Cluster"
_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECT_SECONDS = 1.0
_KEPT_SECONDS = 1.0
"""How long a connection without a request is kept. Servers keep theirs for 2 s (gunicorn), 5 s (uvicorn, Node) or longer, and what
is sent to one that hangs up at that moment is lost: nobody knows whether it was read."""
_MOST = 1_000_000
_UNLIMITED = {"max_connections": _MOST, "max_pending_requests": _MOST, "max_requests": _MOST, "max_retries": _MOST}
_EJECTION = {
    "interval": "1s",
    "base_ejection_time": "5s",
    "max_ejection_time": "60s",
    "max_ejection_percent": 50,
    "split_external_local_origin_errors": True,
    "consecutive_5xx": 5,
    "consecutive_gateway_failure": 5,
    "consecutive_local_origin_failure": 3,
    "enforcing_consecutive_5xx": 100,
    "enforcing_consecutive_gateway_failure": 100,
    "enforcing_consecutive_local_origin_failure": 100,
    "enforcing_success_rate": 0,
    "enforcing_local_origin_success_rate": 0,
}
"""A replica that fails five times in a row, or three times cannot be reached, is left out for 5 s, then longer each time;
never more than half of them."""


class Place(NamedTuple):
    """Where somebody listens: a host and a port, or, with port 0, a socket in the file system."""

    address: str
    port: int = 0


def replica_cluster(pool: Pool, limit: int, *, grpc: bool) -> Manifest:
    """The replicas of ``pool``, each of which takes ``limit`` requests at once (0: any number); others wait for one.

    A request over HTTP/1.1 has a connection to itself, so the limit is one of connections; over HTTP/2 one of streams.
    """
    name = cluster_name(pool, grpc=grpc)
    breakers: Manifest = {"thresholds": [_UNLIMITED]}
    if limit:
        breakers["per_host_thresholds"] = [{"max_connections": 1 if grpc else limit}]
    protocol: Manifest = {"http2_protocol_options": _streams(limit)} if grpc else {"http_protocol_options": {}}
    policy = extension(
        "envoy.load_balancing_policies.least_request",
        "envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest",
        choice_count=2,
    )
    return typed(
        CLUSTER,
        name=name,
        type="EDS",
        connect_timeout=seconds(_CONNECT_SECONDS),
        eds_cluster_config={"service_name": name, "eds_config": {"ads": {}, "resource_api_version": "V3"}},
        load_balancing_policy={"policies": [{"typed_extension_config": policy}]},
        circuit_breakers=breakers,
        outlier_detection=_EJECTION,
        typed_extension_protocol_options={
            _OPTIONS: typed(
                _OPTIONS,
                explicit_http_config=protocol,
                common_http_protocol_options={"idle_timeout": seconds(_KEPT_SECONDS)},
            )
        },
    )


def endpoints(replicas: Sequence[Replica], layout: Layout, *, grpc: bool) -> tuple[Place, ...]:
    """Where the replicas are. While there are none it is where requests wait, for those that are on their way already."""
    if not replicas:
        return waiting_endpoints(layout)
    return tuple(Place(one.address, one.grpc if grpc else one.http) for one in replicas)


def waiting_endpoints(layout: Layout) -> tuple[Place, ...]:
    """Where requests wait."""
    return (Place(layout.socket(HOLD)),)


def own_clusters(layout: Layout) -> list[Manifest]:
    """The proxy's own sockets, spoken to as the client spoke; the activator's and that of
    clusters and routes, over HTTP/1.1; the directory's, over gRPC."""
    same: Manifest = {"use_downstream_protocol_config": {"http_protocol_options": {}, "http2_protocol_options": {}}}
    plain: Manifest = {"explicit_http_config": {"http_protocol_options": {}}}
    newer: Manifest = {"explicit_http_config": {"http2_protocol_options": {}}}
    return [
        {
            "name": name,
            "type": "STATIC",
            "connect_timeout": seconds(_CONNECT_SECONDS),
            "load_assignment": assignment(name, socket(layout.socket(name))),
            "circuit_breakers": {"thresholds": [_UNLIMITED]},
            "typed_extension_protocol_options": {_OPTIONS: typed(_OPTIONS, **options)},
        }
        for name, options in ((HOLD, same), (AGAIN, same), (ACTIVATOR, plain), (SETTINGS, plain), (DIRECTORY, newer))
    ]


def _streams(limit: int) -> Manifest:
    return {"max_concurrent_streams": limit} if limit else {}
