"""The routes: by host, and within a host by what is asked."""

from collections.abc import Callable, Iterable, Sequence

from inference_gateway.domain.envoy.layout import HOLD, ROUTES, SHARE, cluster_name
from inference_gateway.domain.envoy.types import seconds, typed
from inference_gateway.domain.serving.replica import Pool
from inference_gateway.domain.serving.service import ALL, Component
from kube import Manifest

BY_MODEL, COUNTING = "by_model", "envoy.filters.http.lua"
"""Filters that routes may turn on: one looks a request up by its model, one counts off the shares."""
_ENABLED = typed("envoy.config.route.v3.FilterConfig", config={})
_UNSENT = "connect-failure,refused-stream,reset-before-request"
"""Failures of which it is sure that nobody has seen the request."""
_RETRIES = {
    "num_retries": 40,
    "retry_back_off": {"base_interval": "0.025s", "max_interval": "0.5s"},
}
"""Some ten seconds: as long as it may take until it is known that a replica has gone without a word."""
_RESENT_BYTES = 8 << 20
"""The longest body of a request that may be sent again: it is kept until the answer begins."""
_READING = {"name": ":method", "string_match": {"safe_regex": {"regex": "GET|HEAD|OPTIONS"}}}
_EXPLAINED = {"safe_regex": {"regex": "[^?]*:explain"}}
_IDLE_SECONDS = 3600

IsReady = Callable[[Pool], bool]


def routes_of(name: str, component: Component, explainer: Component | None, is_ready: IsReady) -> list[Manifest]:
    """The routes of one host; ``name`` is of whom."""
    found = [
        _route(name, {"prefix": "/", "grpc": {}}, component, is_ready, _UNSENT, grpc=True),
        _route(name, {"prefix": "/", "headers": [_READING]}, component, is_ready, f"{_UNSENT},reset"),
        _route(name, {"prefix": "/"}, component, is_ready, _UNSENT),
    ]
    if explainer is not None:
        found.insert(0, _route(f"{name}:explain", _EXPLAINED, explainer, is_ready, _UNSENT))
    return found


def virtual_host(name: str, hosts: Sequence[str], routes: Sequence[Manifest]) -> Manifest:
    """What is asked under ``hosts``."""
    return {"name": name, "domains": list(hosts), "routes": list(routes), "request_body_buffer_limit": _RESENT_BYTES}


def route_configuration(virtual_hosts: Iterable[Manifest]) -> Manifest:
    """All of it. What nobody is known for is looked up by the path's model, and waits for somebody to say what to do with it."""
    lost = {
        "match": {"prefix": "/"},
        "name": "lost",
        "route": {"cluster": HOLD, "timeout": "0s", "idle_timeout": "0s"},
        "typed_per_filter_config": {BY_MODEL: _ENABLED, COUNTING: _ENABLED},
    }
    return typed(
        "envoy.config.route.v3.RouteConfiguration",
        name=ROUTES,
        ignore_port_in_host_matching=True,
        virtual_hosts=[*virtual_hosts, virtual_host("lost", ["*"], [lost])],
    )


def _route(
    name: str, match: Manifest, component: Component, is_ready: IsReady, retry_on: str, *, grpc: bool = False
) -> Manifest:
    """Shares are counted off where there are several: the first takes the numbers from 0, and so on (`Component.choose`)."""
    targets = [
        (cluster_name(pool, grpc=grpc) if is_ready(pool) else HOLD, percent) for pool, percent in component.split
    ]
    action: Manifest = {
        "timeout": seconds(component.timeout_seconds),
        "idle_timeout": seconds(_IDLE_SECONDS),
        "retry_policy": {"retry_on": retry_on, **_RETRIES},
    }
    found: Manifest = {"match": match, "name": name, "route": action}
    if len(targets) > 1:
        found["metadata"] = {"filter_metadata": {COUNTING: {"split": name}}}
        found["typed_per_filter_config"] = {COUNTING: _ENABLED}
        weights = [{"name": cluster, "weight": percent} for cluster, percent in targets]
        action["weighted_clusters"] = {"header_name": SHARE, "clusters": weights}
        assert sum(percent for _, percent in targets) == ALL, f"{name}: shares are {targets}"
    else:
        action["cluster"] = targets[0][0] if targets else HOLD
    return found
