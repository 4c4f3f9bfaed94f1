"""From the server's messages to plain values, and from its statuses to errors."""

import re
from collections.abc import Iterable
from typing import Any

import grpc
import orjson

from kube import Key
from tidegate.api.v1 import api_pb2
from tidegate.client.errors import (
    ClientError,
    Conflict,
    Denied,
    Expired,
    NotFound,
    Refused,
    TimedOut,
    Unavailable,
)
from tidegate.client.results import (
    Applied,
    Change,
    Explanation,
    FieldProblem,
    Happening,
    Page,
    ServiceState,
    SystemStatus,
    User,
)

_ERRORS: dict[grpc.StatusCode, type[ClientError]] = {
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.INVALID_ARGUMENT: Refused,
    grpc.StatusCode.FAILED_PRECONDITION: Refused,
    grpc.StatusCode.ALREADY_EXISTS: Refused,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Refused,
    grpc.StatusCode.PERMISSION_DENIED: Denied,
    grpc.StatusCode.UNAUTHENTICATED: Denied,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.OUT_OF_RANGE: Expired,
    grpc.StatusCode.DEADLINE_EXCEEDED: TimedOut,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
}
_CONNECTING = re.compile(
    r"failed to connect|dns resolution|connection refused|connection reset|socket closed|goaway", re.I
)
_NOT_SENT = re.compile(r"failed to connect|dns resolution|connection refused", re.I)
_CAUSE = re.compile(
    r"connection refused|connection reset|no route to host|timed? ?out|network is unreachable|dns", re.I
)


def is_away(error: grpc.RpcError) -> bool:
    """Whether there was no server, or none any more: what a server itself cannot reach is another matter."""
    call: Any = error
    return bool(call.code() == grpc.StatusCode.UNAVAILABLE and _CONNECTING.search(str(call.details() or "")))


def was_not_sent(error: grpc.RpcError) -> bool:
    """Whether the request certainly reached no server."""
    call: Any = error
    return is_away(error) and bool(_NOT_SENT.search(str(call.details() or "")))


def client_error(error: grpc.RpcError, server: str) -> ClientError:
    """The error to raise instead of gRPC's own."""
    call: Any = error
    code, text = call.code(), str(call.details() or "")
    if is_away(error):
        cause = _CAUSE.search(text)
        return Unavailable(f"no Tidegate answers at {server}" + (f": {cause[0].lower()}" if cause else ""))
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(f"{server} did not answer in time; whether it was done is not known, and asking again is safe")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return Refused(f"the server at {server} cannot do that: it is older than this client, or no Tidegate")
    kind = _ERRORS.get(code)
    return kind(text or code.name) if kind else ClientError(f"{server} failed: {text or code.name}")


def key_of(name: api_pb2.ObjectName) -> Key:
    """The key that a message names."""
    return Key(name.kind, name.namespace, name.name)


def applied(results: Iterable[api_pb2.ApplyResult], revision: int) -> list[Applied]:
    """What became of each object."""
    return [
        Applied(
            key_of(one.name),
            one.outcome,
            tuple(FieldProblem(error.path, error.value, error.rule) for error in one.errors),
            tuple(one.warnings),
            one.message,
            one.uid,
            revision,
        )
        for one in results
    ]


def page(answer: api_pb2.ListResponse) -> Page:
    """A part of a list."""
    return Page(tuple(map(orjson.loads, answer.manifests)), answer.next_page_token, answer.revision)


def change(answer: api_pb2.WatchResponse) -> Change:
    """One thing that a watch sees."""
    return Change(answer.type, orjson.loads(answer.manifest) if answer.manifest else {}, answer.revision)


def explanation(answer: api_pb2.ExplainResponse) -> Explanation:
    """The answer to why."""
    return Explanation(tuple(answer.lines), orjson.loads(answer.details) if answer.details else {})


def happenings(answer: api_pb2.EventsResponse) -> list[Happening]:
    """What was decided and done, oldest first."""
    return [
        Happening(
            one.at_ms,
            one.source,
            one.name,
            one.reason,
            one.message,
            key_of(one.about),
            one.applied,
            one.revision,
            one.id,
        )
        for one in answer.events
    ]


def system_status(answer: api_pb2.StatusResponse) -> SystemStatus:
    """The whole system."""
    services = tuple(ServiceState(one.name, one.ready, one.message, one.position) for one in answer.services)
    return SystemStatus(answer.revision, answer.version, dict(answer.objects), services)


def user(answer: api_pb2.WhoAmIResponse) -> User:
    """Who the caller is."""
    return User(answer.user, tuple(answer.namespaces), tuple(answer.reads) or ("*",))
