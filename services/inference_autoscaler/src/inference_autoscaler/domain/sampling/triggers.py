"""Where the triggers of ScaledObjects are to be asked, read from their metadata in KEDA's words."""

from collections.abc import Iterable
from urllib.parse import parse_qsl

from inference_autoscaler.domain.horizontal.desk import SYNC_MS
from inference_autoscaler.domain.keda.scaled_object import NAME_LABEL, Trigger, read
from inference_autoscaler.domain.sampling.source import Access, JetStreamLag, JsonValue, Promql, Source
from inference_autoscaler.domain.sampling.want import Want
from kube import Key, Manifest, Object

AUTHENTICATION, CLUSTER_AUTHENTICATION = "TriggerAuthentication.keda.sh", "ClusterTriggerAuthentication.keda.sh"
DEFAULT_ACCOUNT = "$G"


def wants_of_scaled_object(item: Object) -> Iterable[Want]:
    """What is to be asked for ``item``. A trigger that names no server is left to who hands its samples in."""
    spec = read(item)
    # KEDA is asked at each round of the autoscaler too, and asks its source each time.
    for trigger, given in zip(spec.triggers, item.spec["triggers"], strict=True):
        cached = given.get("useCachedMetrics") is True
        every = spec.polling_ms if cached else min(spec.polling_ms, SYNC_MS)
        source = _source(trigger, _access(given, trigger.metadata, item.namespace))
        if source is not None:
            labels = ((NAME_LABEL, item.name),)
            yield Want(item.namespace, trigger.metric, source, max(every, 1000), labels)


def _source(trigger: Trigger, access: Access) -> Source | None:
    told = {name: str(value) for name, value in trigger.metadata.items()}
    match trigger.type:
        case "prometheus" if told.get("serverAddress"):
            parameters = [*_pairs(told.get("queryParameters", ""))]
            if told.get("namespace"):
                parameters.append(("namespace", told["namespace"]))
            return Promql(
                told["serverAddress"].rstrip("/"),
                told["query"],
                empty_is_zero=told.get("ignoreNullValues") == "true",
                parameters=tuple(parameters),
                access=access,
            )
        case "nats-jetstream" if told.get("natsServerMonitoringEndpoint"):
            scheme = "https" if told.get("useHttps") == "true" else "http"
            address = f"{scheme}://{told['natsServerMonitoringEndpoint']}"
            account = told.get("account") or DEFAULT_ACCOUNT
            return JetStreamLag(address, account, told["stream"], told["consumer"], access)
        case "metrics-api" if told.get("url") and told.get("format", "json") == "json":
            return JsonValue(told["url"], told["valueLocation"], access)
    return None


def _access(given: Manifest, metadata: Manifest, namespace: str) -> Access:
    reference = given.get("authenticationRef") or {}
    name, kind = str(reference.get("name") or ""), str(reference.get("kind") or "TriggerAuthentication")
    place = "" if kind.startswith("Cluster") else namespace
    key = Key(CLUSTER_AUTHENTICATION if not place else AUTHENTICATION, place, name) if name else None
    modes = str(metadata.get("authModes") or metadata.get("authMode") or "")
    unverified = str(metadata.get("unsafeSsl")).lower() == "true"
    return Access(key, tuple(mode.strip() for mode in modes.split(",") if mode.strip()), unverified)


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    """``key=value,key=value``."""
    return parse_qsl(text.replace(",", "&"))
