"""The listeners: where everybody comes in, where requests wait, and where those that waited start again."""

from collections.abc import Sequence

from inference_gateway.domain.envoy.layout import (
    ACTIVATOR,
    AGAIN,
    ASKED,
    HELD,
    HOLD,
    LATER,
    PUBLIC,
    ROUTES,
    SETTINGS,
    SHARE,
    Layout,
)
from inference_gateway.domain.envoy.routes import BY_MODEL, COUNTING
from inference_gateway.domain.envoy.types import address, asked_of, extension, seconds, socket
from inference_gateway.domain.serving.names import MODELS
from kube import Manifest

_HTTP = "envoy.extensions.filters.http"
_BY_MODEL = f"""
function envoy_on_request(handle)
  local headers = handle:headers()
  local model = string.match(headers:get(":path"), "^/v[12]/models/([^/:?]+)")
  if model == nil then return end
  if headers:get("{ASKED}") == nil then headers:replace("{ASKED}", headers:get(":authority")) end
  headers:replace(":authority", model .. ".{MODELS}")
  handle:clearRouteCache()
end
"""
_COUNTING = f"""
local counts = {{}}
function envoy_on_request(handle)
  local split = handle:metadata():get("split")
  if split == nil then return end
  local headers = handle:headers()
  if headers:get("{SHARE}") == nil then
    local count = counts[split] or 0
    counts[split] = (count + 1) % 100
    headers:replace("{SHARE}", tostring(count * 61 % 100))
  end
  handle:clearRouteCache()
end
"""
"""61 and 100 have no common divisor: of 100 requests in a row each has another number, and those of a small share come at
even distances."""


def listeners(places: Sequence[tuple[str, int]], hold_seconds: int, layout: Layout) -> list[Manifest]:
    """All three; everybody comes in at any of ``places``, a host and a port. ``hold_seconds`` is longer than any request waits."""
    strip = extension(
        "envoy.http.early_header_mutation.header_mutation",
        "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
        mutations=[{"remove": name} for name in (SHARE, HELD, ASKED)],
    )
    routed = {"rds": {"route_config_name": ROUTES, "config_source": asked_of(SETTINGS)}}
    waiting = {"route_config": {"name": HOLD, "virtual_hosts": [_onwards()]}}
    public: Manifest = {"early_header_mutation_extensions": [strip], "use_remote_address": True}
    inner: Manifest = {"use_remote_address": False, "skip_xff_append": True, "stream_idle_timeout": "0s"}
    first, *others = (address(*place) for place in places)
    entrance = _listener(PUBLIC, first, _looking_up(), {**routed, **public, "local_reply_config": _replies()})
    if others:
        entrance["additional_addresses"] = [{"address": one} for one in others]
    return [
        entrance,
        _listener(
            HOLD,
            socket(layout.socket(HOLD)),
            [_asking(hold_seconds)],
            {**waiting, **inner, "local_reply_config": _refusals()},
        ),
        _listener(AGAIN, socket(layout.socket(AGAIN)), _looking_up(), {**routed, **inner}),
    ]


def _listener(name: str, place: Manifest, filters: list[Manifest], options: Manifest) -> Manifest:
    router = extension("envoy.filters.http.router", f"{_HTTP}.router.v3.Router", suppress_envoy_headers=True)
    manager = extension(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=name,
        codec_type="AUTO",
        normalize_path=True,
        http_filters=[*filters, router],
        upgrade_configs=[{"upgrade_type": "websocket"}],
        **options,
    )
    return {"name": name, "address": place, "filter_chains": [{"filters": [manager]}]}


def _looking_up() -> list[Manifest]:
    """Off, but for the routes that ask for it."""
    return [
        {**extension(name, f"{_HTTP}.lua.v3.Lua", default_source_code={"inline_string": code}), "disabled": True}
        for name, code in ((BY_MODEL, _BY_MODEL), (COUNTING, _COUNTING))
    ]


def _asking(hold_seconds: int) -> Manifest:
    """Ask the activator, and wait for its answer: 200 for onwards, anything else is for the client.

    Where the activator goes away in the meantime it is asked again: the request is here, and nobody has seen it.
    """
    longest = seconds(hold_seconds)
    return extension(
        "envoy.filters.http.ext_authz",
        f"{_HTTP}.ext_authz.v3.ExtAuthz",
        status_on_error={"code": "ServiceUnavailable"},
        http_service={
            "server_uri": {"uri": f"http://{ACTIVATOR}", "cluster": ACTIVATOR, "timeout": longest},
            # The longest pause is the longest wait for one answer as well.
            "retry_policy": {
                "retry_on": "connect-failure,reset,refused-stream",
                "num_retries": 30,
                "retry_back_off": {"base_interval": "0.05s", "max_interval": longest},
            },
            "authorization_response": {
                "allowed_upstream_headers": {"patterns": [{"exact": HELD}]},
                "allowed_client_headers": {"patterns": [{"exact": "content-type"}, {"exact": "retry-after"}]},
            },
        },
        allowed_headers={"patterns": [{"exact": name} for name in (SHARE, ASKED, HELD)]},
    )


def _onwards() -> Manifest:
    action = {"cluster": AGAIN, "timeout": "0s", "idle_timeout": "0s", "host_rewrite_header": ASKED}
    return {"name": AGAIN, "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": action}]}


def _replies() -> Manifest:
    """What the proxy answers by itself, as JSON that says why."""
    words = {"error": "%LOCAL_REPLY_BODY%", "reason": "%RESPONSE_CODE_DETAILS%", "service": "%ROUTE_NAME%"}
    return {"body_format": {"json_format": words}}


def _refusals() -> Manifest:
    """What the activator refuses, as it says it."""
    later = {"op": "EQ", "value": {"default_value": LATER, "runtime_key": "tidegate.later"}}
    return {
        "mappers": [{"filter": {"status_code_filter": {"comparison": later}}, "status_code": 503}],
        "body_format": {
            "text_format_source": {"inline_string": "%LOCAL_REPLY_BODY%"},
            "content_type": "application/json",
        },
    }
