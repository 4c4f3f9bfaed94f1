"""What users write through our own API, carried to an API server: it decides, with its own admission, whether that enters.

Several objects of one request are tried first (``dryRun``), so that what cannot be stored whole is not begun. An API server
knows no transaction: where one of them fails after that, the reply says which are stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from apiserver.api import Answer, Api, ApiRequest
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.domain.writing import Conflict, Parts, Write, check
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.kubernetes.requests import reading, served_kind
from kube import Key, Manifest, Object
from kube.kinds import api_version_of
from tidegate.gateway.v1 import gateway_pb2

NOT_FOUND = 404
TRIED: Mapping[str, str] = {"dryRun": "All"}


class Unwritten(Exception):
    """The request cannot be carried out; the text says why, and what of it is stored."""


class Writer:
    """Writes to an API server; ``mirror`` tells what is there.

    With an ``identity`` the API server takes it as written by that user: its own rules, its audit log and the webhooks of others
    see who it was. Without one the gateway's own rights count.
    """

    def __init__(
        self,
        api: Api,
        mirror: Mirror,
        served: Mapping[str, Served],
        identity: gateway_pb2.Identity | None = None,
    ) -> None:
        self._api, self._mirror, self._served = api, mirror, served
        self._headers = impersonation(identity) if identity is not None else ()

    async def write(self, writes: Sequence[Write], actor: str) -> list[tuple[Key, Answer]]:
        """Store all of it; what the server says of each. Raises Conflict, NotServed, Unwritten, Unreachable."""
        for write in writes:
            check(self._mirror.cluster, write)
        requests = [(key, self._request(write, key, actor)) for write in writes for key in write.keys]
        if len(requests) > 1:
            for key, request in requests:
                tried = {**(request.parameters or {}), **TRIED}
                self._judge(key, await self._api.send(replace(request, parameters=tried)), [])
        done: list[tuple[Key, Answer]] = []
        for key, request in requests:
            answer = await self._api.send(request)
            self._judge(key, answer, [key for key, _ in done])
            if request.method == "DELETE" and answer.ok:
                answer = await self._api.send(reading(key, self._served))
            done.append((key, answer))
        return done

    def _request(self, write: Write, key: Key, actor: str) -> ApiRequest:
        there = self._mirror.store.get(key)
        kind = served_kind(self._served, key)
        if write.parts is None:
            return self._asked("DELETE", kind.path(key.namespace, key.name), _deletion(write), {})
        manifest = _manifest(key, write.parts, there, self._mirror.versions.get(key, 0))
        parameters = {"fieldManager": f"tidegate-{actor or 'user'}"[:128]}
        if there is None:
            return self._asked("POST", kind.path(key.namespace), manifest, parameters)
        return self._asked("PUT", kind.path(key.namespace, key.name), manifest, parameters)

    def _asked(self, method: str, path: str, body: Manifest, parameters: Mapping[str, str]) -> ApiRequest:
        return ApiRequest(method, path, body, parameters, headers=self._headers)

    def _judge(self, key: Key, answer: Answer, stored: Sequence[Key]) -> None:
        if answer.ok or answer.code == NOT_FOUND:
            return
        if answer.reason in ("Conflict", "AlreadyExists") and not stored:
            raise Conflict(key, self._mirror.cluster.revision, "was changed meanwhile")
        behind = f"; stored before it: {', '.join(map(str, stored))}" if stored else ""
        raise Unwritten(f"{key}: {answer.message}{behind}")


def impersonation(identity: gateway_pb2.Identity) -> tuple[tuple[str, str], ...]:
    """The headers by which a request is another user's (Kubernetes' user impersonation)."""
    extra = [(quote(key, safe=""), value) for key, values in identity.extra.items() for value in values.values]
    return (
        ("Impersonate-User", identity.user),
        *((("Impersonate-Uid", identity.uid),) if identity.uid else ()),
        *(("Impersonate-Group", group) for group in identity.groups),
        *((f"Impersonate-Extra-{key}", value) for key, value in extra),
    )


def _deletion(write: Write) -> Manifest:
    options: Manifest = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    if write.grace_seconds is not None:
        options["gracePeriodSeconds"] = write.grace_seconds
    if write.uid:
        options["preconditions"] = {"uid": write.uid}
    return options


def _manifest(key: Key, parts: Parts, there: Object | None, version: int) -> Manifest:
    metadata = {**parts.metadata, "name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    if there is not None:
        metadata["uid"] = there.uid
        if version:
            metadata["resourceVersion"] = str(version)
    manifest = {"apiVersion": api_version_of(key.kind), "kind": key.kind.partition(".")[0], "metadata": metadata}
    return {**manifest, **parts.body}
