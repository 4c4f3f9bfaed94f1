"""By whom an API server lets itself be recognised when it hands a request on, and for whom it then speaks.

It shows a certificate of an authority that it publishes in a ConfigMap, and says in headers who asked it.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from apiserver import Api, Unreachable
from kube import Manifest
from tidegate.gateway.v1 import gateway_pb2

log = logging.getLogger(__name__)

PUBLISHED = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
LOOK_SECONDS, PAUSE = 60.0, 2.0

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose certificates count (PEM), for which names (all where there are none), and the headers that say who asked."""

    authority: str
    names: frozenset[str]
    users: Sequence[str]
    groups: Sequence[str]
    extras: Sequence[str]

    def identity(self, certificate: Mapping[str, object] | None, headers: Headers) -> gateway_pb2.Identity | None:
        """For whom a connection with ``certificate`` speaks; None where it is not the API server's."""
        if not certificate or (self.names and not self.names & set(_common_names(certificate))):
            return None
        told = [(name.lower(), value) for name, value in headers]
        user = next((value for wanted in self.users for name, value in told if name == wanted), "")
        if not user:
            return None
        identity = gateway_pb2.Identity(user=user, groups=[value for name, value in told if name in self.groups])
        for prefix in self.extras:
            for name, value in told:
                if name.startswith(prefix):
                    identity.extra[unquote(name.removeprefix(prefix))].values.append(value)
        return identity


def read_trust(config_map: Manifest) -> Trust | None:
    """What the ConfigMap publishes; None where the API server hands no requests on."""
    data: Manifest = config_map.get("data") or {}
    authority = str(data.get("requestheader-client-ca-file") or "")
    try:
        names, users, groups, extras = (
            [str(one) for one in json.loads(data.get(f"requestheader-{part}") or "[]")]
            for part in ("allowed-names", "username-headers", "group-headers", "extra-headers-prefix")
        )
    except (ValueError, TypeError):
        return None
    if not authority or not users:
        return None
    return Trust(authority, frozenset(names), *([one.lower() for one in listed] for listed in (users, groups, extras)))


class FrontProxy:
    """Keeps up with what ``api`` publishes: ``trust`` is there once it is ``ready``; ``changed`` is set when it is another."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.trust: Trust | None = None
        self.ready, self.changed = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Look again and again, for ever."""
        while True:
            try:
                answer = await self._api.get(PUBLISHED)
                found = read_trust(answer.body) if answer.ok else None
                why = "it publishes no authority for requests that it hands on" if answer.ok else answer.message
            except Unreachable as error:
                found, why = None, str(error)
            if found is None:
                log.warning("front_proxy_unknown", extra={"detail": why})
            elif found != self.trust:
                self.trust = found
                self.ready.set()
                self.changed.set()
            await asyncio.sleep(LOOK_SECONDS if found else PAUSE)


def _common_names(certificate: Mapping[str, object]) -> list[str]:
    """Of a peer's certificate as the module ssl tells it."""
    subject = certificate.get("subject")
    pairs = [pair for part in subject for pair in part] if isinstance(subject, tuple) else []
    return [str(value) for name, value in pairs if name == "commonName"]
