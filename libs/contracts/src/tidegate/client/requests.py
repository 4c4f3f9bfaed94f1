"""The messages that both clients send."""

from collections.abc import Iterable, Iterator, Sequence

import grpc
import orjson

from kube import Key, Manifest
from tidegate.api.v1 import api_pb2
from tidegate.client.endpoint import Endpoint

MOST_BYTES = 2 * 1024 * 1024
"""Of one request: gRPC servers refuse messages above 4 MiB unless they are told otherwise."""
MOST_OBJECTS = 1_000
PAGE = 500

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A proxy that is set for web pages does not lead to 127.0.0.1.
    ("grpc.enable_http_proxy", 0),
    ("grpc.primary_user_agent", "tidegate-client"),
    # A server that was away is there again within seconds; by default it is not looked for again for up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


Patch = Manifest | Sequence[Manifest]
"""A merge patch, or the operations of a JSON patch."""


def credentials(endpoint: Endpoint) -> grpc.ChannelCredentials | None:
    """What a channel checks the server with; None for one in the clear."""
    return grpc.ssl_channel_credentials(endpoint.authority) if endpoint.authority else None


def metadata(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """The header that says who is asking."""
    return (("authorization", f"Bearer {endpoint.token}"),) if endpoint.token else ()


def apply_request(
    manifests: Iterable[Manifest], *, dry_run: bool = False, replace: bool = False, create_only: bool = False
) -> api_pb2.ApplyRequest:
    """One request for all of ``manifests``."""
    return api_pb2.ApplyRequest(
        manifests=[orjson.dumps(manifest) for manifest in manifests],
        dry_run=dry_run,
        replace=replace,
        create_only=create_only,
    )


def make_names(manifests: Iterable[Manifest]) -> bool:
    """Whether the server is to make the name of one of them: applied again, it would be another one."""
    return any(not (manifest.get("metadata") or {}).get("name") for manifest in manifests)


def batches(manifests: Sequence[Manifest]) -> Iterator[Sequence[Manifest]]:
    """``manifests`` in order, in parts that a message may hold; one part where they are few."""
    start, size = 0, 0
    for position, manifest in enumerate(manifests):
        more = len(orjson.dumps(manifest))
        if position > start and (size + more > MOST_BYTES or position - start >= MOST_OBJECTS):
            yield manifests[start:position]
            start, size = position, 0
        size += more
    if start < len(manifests):
        yield manifests[start:]


def object_name(kind: str, name: str, namespace: str) -> api_pb2.ObjectName:
    """How a request names an object."""
    return api_pb2.ObjectName(kind=kind, namespace=namespace, name=name)


def patch_request(kind: str, name: str, namespace: str, change: Patch, dry_run: bool) -> api_pb2.PatchRequest:
    """One patch of one object."""
    named = object_name(kind, name, namespace)
    return api_pb2.PatchRequest(name=named, patch=orjson.dumps(change), dry_run=dry_run)


def delete_request(keys: Iterable[Key], grace_seconds: int | None, dry_run: bool) -> api_pb2.DeleteRequest:
    """One request for all of ``keys``."""
    names = [object_name(key.kind, key.name, key.namespace) for key in keys]
    return api_pb2.DeleteRequest(names=names, grace_seconds=grace_seconds, dry_run=dry_run)


def events_request(namespace: str, about: Key | None, limit: int, *, dead: bool, writes: bool) -> api_pb2.EventsRequest:
    """The newest happenings, of a namespace or about one object."""
    named = object_name(about.kind, about.name, about.namespace) if about else None
    return api_pb2.EventsRequest(namespace=namespace, about=named, limit=limit, dead=dead, writes=writes)
