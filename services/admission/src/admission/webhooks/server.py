"""The webhooks' server: keeps its certificate fresh and the API server told, and answers reviews from the view of the facts."""

import asyncio
import base64
import datetime
import logging
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
from aiohttp import web

from admission.domain.webhook import answer
from admission.view import View
from admission.webhooks.certificates import Certificates, make
from admission.webhooks.registration import Place, configurations
from apiserver import Answer, Api, ApiRequest, Unreachable
from apiserver.api import MERGE_PATCH
from kube import Manifest

log = logging.getLogger(__name__)

SECRET = "tidegate-admission-tls"
LOOK_SECONDS = 600.0
PAUSE = 2.0
NOT_FOUND, CONFLICT = 404, 409
LARGEST_REVIEW = 8 << 20


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """``names`` are what the API server may call the server by (DNS names, addresses)."""

    host: str
    port: int
    names: Sequence[str]
    place: Place


class NotRegistered(Exception):
    """The API server did not take the webhooks' configuration or certificates; the text says why."""


class Webhooks:
    """Admission, as an API server asks for it."""

    def __init__(self, api: Api, view: View, settings: WebhookSettings) -> None:
        self._api, self._view, self._settings = api, view, settings
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._certificates: Certificates | None = None
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Serve for ever. Reviews are answered once the state of the cluster is known."""
        await self._view.ready.wait()
        async with self._api:
            await self._until_fresh()
            app = web.Application(client_max_size=LARGEST_REVIEW)
            app.router.add_post("/mutate", lambda request: self._review(request, patch=True))
            app.router.add_post("/validate", lambda request: self._review(request, patch=False))
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            try:
                await web.TCPSite(runner, self._settings.host, self._settings.port, ssl_context=self._context).start()
                await self._until(self._register)
                self.ready.set()
                while True:
                    await asyncio.sleep(LOOK_SECONDS)
                    await self._until_fresh()
                    await self._until(self._register)
            finally:
                await runner.cleanup()

    async def _review(self, request: web.Request, *, patch: bool) -> web.Response:
        try:
            review = orjson.loads(await request.read())
            told = answer(review, self._view.store, patch=patch)
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            return web.Response(status=400, text=f"not an AdmissionReview: {type(error).__name__}: {error}")
        return web.Response(body=orjson.dumps(told), content_type="application/json")

    async def _until_fresh(self) -> None:
        await self._until(self._refresh)

    async def _until(self, step: Callable[[], Awaitable[None]]) -> None:
        """Do ``step``, again and again until the API server takes it."""
        while True:
            try:
                await step()
                return
            except (Unreachable, NotRegistered) as error:
                log.warning("webhooks_not_registered", extra={"detail": str(error)})
                await asyncio.sleep(PAUSE)

    async def _refresh(self) -> None:
        """The certificates that all replicas share: those in the Secret if they are fresh, else new ones put there."""
        now = datetime.datetime.now(datetime.UTC)
        namespace = self._settings.place.namespace
        path = f"/api/v1/namespaces/{namespace}/secrets"
        found = await self._api.get(f"{path}/{SECRET}")
        known = _read(found.body) if found.ok else None
        if known is None or not known.is_fresh(now, self._settings.names):
            known = make(self._settings.names, now, known)
            if found.ok:
                body = {"metadata": {"resourceVersion": found.body["metadata"]["resourceVersion"]}, **_data(known)}
                stored = await self._api.send(ApiRequest("PATCH", f"{path}/{SECRET}", body, content=MERGE_PATCH))
            else:
                await self._make_namespace(namespace)
                body = {"metadata": {"name": SECRET, "namespace": namespace}, "type": "Opaque", **_data(known)}
                stored = await self._api.send(ApiRequest("POST", path, body))
            _taken(stored)
        if known != self._certificates:
            self._load(known)

    async def _make_namespace(self, name: str) -> None:
        made = await self._api.send(ApiRequest("POST", "/api/v1/namespaces", {"metadata": {"name": name}}))
        if made.code != CONFLICT:
            _taken(made)

    def _load(self, certificates: Certificates) -> None:
        """Connections from now on are served with these; the context reads them from files alone."""
        with tempfile.TemporaryDirectory() as folder:
            chain, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
            chain.write_bytes(certificates.serving)
            key.touch(mode=0o600)
            key.write_bytes(certificates.serving_key)
            self._context.load_cert_chain(chain, key)
        self._certificates = certificates

    async def _register(self) -> None:
        assert self._certificates is not None, "certificates come before registration"
        wanted = configurations(self._settings.place, self._certificates.authority)
        for plural, manifest in wanted.items():
            path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
            found = await self._api.get(f"{path}/{manifest['metadata']['name']}")
            if found.code == NOT_FOUND:
                _taken(await self._api.send(ApiRequest("POST", path, manifest)))
            elif found.ok and not _holds(found.body, manifest):
                metadata = {**manifest["metadata"], "resourceVersion": found.body["metadata"]["resourceVersion"]}
                body = {**manifest, "metadata": metadata}
                _taken(await self._api.send(ApiRequest("PUT", f"{path}/{metadata['name']}", body)))
            else:
                _taken(found)


def _taken(answered: Answer) -> None:
    if not answered.ok:
        raise NotRegistered(answered.message)


def _holds(there: Manifest, wanted: Manifest) -> bool:
    """Whether all that is wanted of the first webhook is so; the server fills in more."""
    webhooks = there.get("webhooks") or [{}]
    return len(webhooks) == 1 and wanted["webhooks"][0].items() <= webhooks[0].items()


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
