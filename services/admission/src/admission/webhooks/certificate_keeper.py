"""Where the certificate of this server comes from, and how it stays fresh without a restart.

Tidegate makes its own, which all replicas share by a Secret; or somebody else, such as cert-manager, renews the files of a folder.
"""

import asyncio
import base64
import datetime
import logging
import ssl
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from admission.webhooks.certificates import Certificates, make
from apiserver import Answer, Api, ApiRequest, Unreachable
from apiserver.api import MERGE_PATCH
from kube import Manifest

log = logging.getLogger(__name__)

SECRET = "tidegate-admission-tls"
CONFLICT = 409
PAUSE = 2.0


class NotKept(Exception):
    """The certificate cannot be had, or the API server did not take what it was told; the text says why."""


@dataclass(frozen=True, slots=True)
class Serving:
    """In PEM: what a server shows, its key, and the authority by which it is trusted; None where others say that."""

    chain: bytes
    key: bytes
    authority: bytes | None


class Source(Protocol):
    """Where a certificate comes from. ``look_seconds`` is how often it is looked for a fresh one."""

    look_seconds: float

    async def current(self) -> Serving:
        """The certificate to serve with from now on. Raises NotKept, Unreachable."""


class MountedFolder:
    """The files ``tls.crt``, ``tls.key`` and, if it is there, ``ca.crt`` of a folder, as a Secret of that type is mounted."""

    look_seconds = 10.0

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def current(self) -> Serving:
        """What the files hold now."""
        authority = self._folder / "ca.crt"
        try:
            chain, key = (self._folder / "tls.crt").read_bytes(), (self._folder / "tls.key").read_bytes()
            return Serving(chain, key, authority.read_bytes() if authority.exists() else None)
        except OSError as error:
            raise NotKept(f"{self._folder}: {error.strerror}: {error.filename}") from None


class OwnSecret:
    """Certificates of our own for ``names``, in a Secret of ``namespace``: those that are there if they are fresh, else new ones."""

    look_seconds = 600.0

    def __init__(self, api: Api, namespace: str, names: Sequence[str]) -> None:
        self._api, self._namespace, self._names = api, namespace, names

    async def current(self) -> Serving:
        """Those of the Secret, made or renewed where that is due."""
        now = datetime.datetime.now(datetime.UTC)
        path = f"/api/v1/namespaces/{self._namespace}/secrets"
        found = await self._api.get(f"{path}/{SECRET}")
        known = _read(found.body) if found.ok else None
        if known is None or not known.is_fresh(now, self._names):
            known = make(self._names, now, known)
            if found.ok:
                body = {"metadata": {"resourceVersion": found.body["metadata"]["resourceVersion"]}, **_data(known)}
                stored = await self._api.send(ApiRequest("PATCH", f"{path}/{SECRET}", body, content=MERGE_PATCH))
            else:
                await self._make_namespace()
                metadata = {"name": SECRET, "namespace": self._namespace}
                stored = await self._api.send(
                    ApiRequest("POST", path, {"metadata": metadata, "type": "Opaque", **_data(known)})
                )
            taken(stored)
        return Serving(known.serving, known.serving_key, known.authority)

    async def _make_namespace(self) -> None:
        found = await self._api.get(f"/api/v1/namespaces/{self._namespace}")
        if not found.ok:
            body = {"metadata": {"name": self._namespace}}
            made = await self._api.send(ApiRequest("POST", "/api/v1/namespaces", body))
            if made.code != CONFLICT:
                taken(made)


class CertificateKeeper:
    """Has the certificate of ``source`` in ``serving`` once it is ``ready``; ``renewed`` hears of each new one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._serving: Serving | None = None
        self.renewed: list[Callable[[Serving], None]] = []
        self.ready = asyncio.Event()

    @property
    def serving(self) -> Serving:
        assert self._serving is not None, "there is a certificate once it is ready"
        return self._serving

    async def run(self) -> None:
        """Keep it fresh for ever."""
        while True:
            try:
                found = await self._source.current()
            except (Unreachable, NotKept) as error:
                log.warning("certificate_not_kept", extra={"detail": str(error)})
                await asyncio.sleep(PAUSE)
                continue
            if found != self._serving:
                self._serving = found
                for hear in self.renewed:
                    hear(found)
                log.info("certificate_renewed")
                self.ready.set()
            await asyncio.sleep(self._source.look_seconds)


def taken(answered: Answer) -> None:
    """Raises NotKept where an API server did not take what it was told."""
    if not answered.ok:
        raise NotKept(answered.message)


def load_into(context: ssl.SSLContext, serving: Serving) -> None:
    """Connections from now on are served with this; a context reads it from files alone."""
    with tempfile.TemporaryDirectory() as folder:
        chain, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        chain.write_bytes(serving.chain)
        key.touch(mode=0o600)
        key.write_bytes(serving.key)
        context.load_cert_chain(chain, key)


_PARTS = {
    "ca.crt": "authority",
    "ca.key": "authority_key",
    "tls.crt": "serving",
    "tls.key": "serving_key",
}


def _read(secret: Manifest) -> Certificates | None:
    data = secret.get("data") or {}
    if not data.keys() >= _PARTS.keys():
        return None
    return Certificates(**{name: base64.b64decode(data[part]) for part, name in _PARTS.items()})


def _data(known: Certificates) -> Manifest:
    return {"data": {part: base64.b64encode(getattr(known, name)).decode() for part, name in _PARTS.items()}}


async def until_set(event: asyncio.Event, seconds: float) -> None:
    """Wait for ``event``, but no longer than ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
