"""The server of the metrics APIs: over TLS, for an API server that hands requests on, and for whoever shows a token."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import orjson
from aiohttp import web

from admission.applier import Unavailable
from admission.callers import Denied
from admission.cluster_callers import ClusterCallers
from admission.domain.metric_values import (
    ALL_PODS,
    CUSTOM,
    EXTERNAL,
    VERSIONS,
    Asked,
    MetricIndex,
    NotKnown,
    custom,
    external,
    group,
    groups,
    kind_of,
    resources,
)
from admission.metrics_api.front_proxy import FrontProxy
from admission.view import View
from admission.webhooks.certificate_keeper import CertificateKeeper, Serving, load_into
from admission.webhooks.server import Address
from kube import Manifest
from kube.selectors import SelectorError, label_selector
from tidegate.gateway.v1 import gateway_pb2

_REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 503: "ServiceUnavailable"}
Handler = Callable[[web.Request], Awaitable[web.Response]]


class MetricsServer:
    """Answers from ``view``. ``proxy`` says how an API server is recognised, ``callers`` ask it what somebody may do."""

    def __init__(
        self, view: View, keeper: CertificateKeeper, proxy: FrontProxy, callers: ClusterCallers, address: Address
    ) -> None:
        self._view, self._keeper, self._proxy = view, keeper, proxy
        self._callers, self._address = callers, address
        self._index = MetricIndex()
        view.also(lambda folded: self._index.fold(folded.events))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        keeper.renewed.append(self._load)
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Serve for ever; anew where the API server shows itself by another authority."""
        for event in (self._view.ready, self._keeper.ready, self._proxy.ready):
            await event.wait()
        self._index.begin(self._view.store)
        while True:
            self._proxy.changed.clear()
            assert self._proxy.trust is not None, "it is known once it is ready"
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.verify_mode = ssl.CERT_OPTIONAL
            self._context.load_verify_locations(cadata=self._proxy.trust.authority)
            self._load(self._keeper.serving)
            runner = web.AppRunner(self._application(), access_log=None)
            await runner.setup()
            try:
                await web.TCPSite(runner, self._address.host, self._address.port, ssl_context=self._context).start()
                self.ready.set()
                await self._proxy.changed.wait()
            finally:
                await runner.cleanup()

    def _load(self, serving: Serving) -> None:
        load_into(self._context, serving)

    def _application(self) -> web.Application:
        app = web.Application()
        get = app.router.add_get
        for path in ("/healthz", "/livez", "/readyz"):
            get(path, _healthy)
        get("/apis", self._told(groups))
        for name, versions in VERSIONS.items():
            get(f"/apis/{name}", self._told(partial(group, name)))
            for version in versions:
                get(f"/apis/{name}/{version}", self._told(partial(resources, self._index, name, version)))
        own = f"/apis/{CUSTOM}/{{version:{'|'.join(VERSIONS[CUSTOM])}}}"
        get(f"{own}/namespaces/{{namespace}}/metrics/{{metric}}", self._granted(_of_namespace, self._custom))
        get(f"{own}/namespaces/{{namespace}}/{{resource}}/{{name}}/{{metric}}", self._granted(_of_object, self._custom))
        get(f"{own}/{{resource}}/{{name}}/{{metric}}", self._granted(_of_object, self._custom))
        outside = f"/apis/{EXTERNAL}/v1beta1/namespaces/{{namespace}}/{{metric}}"
        get(outside, self._granted(_outside, self._external))
        return app

    def _told(self, answer: Callable[[], Manifest]) -> Handler:
        """A handler for whoever is known."""

        async def handle(request: web.Request) -> web.Response:
            try:
                await self._identity(request)
                return _json(answer())
            except Denied as denied:
                return _refused(401, str(denied))
            except Unavailable as error:
                return _refused(503, str(error))

        return handle

    def _granted(
        self, attributes: Callable[[Mapping[str, str]], dict[str, str]], answer: Callable[[web.Request], Manifest]
    ) -> Handler:
        """A handler for whom the cluster lets do what ``attributes`` tell of the path."""

        async def handle(request: web.Request) -> web.Response:
            try:
                identity = await self._identity(request)
                wanted = attributes(request.match_info)
                if refusal := await self._callers.refuses(identity, wanted, f"read {request.path}"):
                    return _refused(403, refusal)
                return _json(answer(request))
            except Denied as denied:
                return _refused(401, str(denied))
            except Unavailable as error:
                return _refused(503, str(error))
            except SelectorError as error:
                return _refused(400, str(error))
            except NotKnown as unknown:
                return _refused(404, str(unknown))

        return handle

    async def _identity(self, request: web.Request) -> gateway_pb2.Identity:
        """Who asks. Raises Denied, Unavailable."""
        transport, trust = request.transport, self._proxy.trust
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        if trust is not None and (found := trust.identity(certificate, request.headers.items())) is not None:
            return found
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Denied("ask through the API server, or show a token")
        return (await self._callers.caller(token.strip())).identity

    def _custom(self, request: web.Request) -> Manifest:
        told, query = request.match_info, request.query
        namespace = told.get("namespace", "")
        resource = told.get("resource", "namespaces")
        name = told.get("name", namespace)
        asked = Asked(
            told["version"],
            namespace or "default",
            kind_of(resource),
            name,
            told["metric"],
            label_selector(query.get("labelSelector", "")) if name == ALL_PODS else {},
            label_selector(query.get("metricLabelSelector", "")),
        )
        return custom(self._index, self._view.store, asked)

    def _external(self, request: web.Request) -> Manifest:
        told = request.match_info
        selector = label_selector(request.query.get("labelSelector", ""))
        return external(self._index, told["namespace"], told["metric"], selector)


def _of_object(told: Mapping[str, str]) -> dict[str, str]:
    """As an API server names it when it asks whether somebody may: the metric is a part of the object."""
    plural, _, _ = told["resource"].partition("/")
    place = {"namespace": told["namespace"]} if "namespace" in told else {}
    named = {"resource": plural, "name": told["name"], "subresource": told["metric"]}
    return {"verb": "get", "group": CUSTOM, "version": told["version"], **place, **named}


def _of_namespace(told: Mapping[str, str]) -> dict[str, str]:
    named = {"resource": "metrics", "name": told["metric"], "namespace": told["namespace"]}
    return {"verb": "get", "group": CUSTOM, "version": told["version"], **named}


def _outside(told: Mapping[str, str]) -> dict[str, str]:
    named = {"resource": told["metric"], "namespace": told["namespace"]}
    return {"verb": "list", "group": EXTERNAL, "version": "v1beta1", **named}


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _json(content: Manifest, code: int = 200) -> web.Response:
    return web.Response(status=code, body=orjson.dumps(content), content_type="application/json")


def _refused(code: int, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    return _json({**status, "reason": _REASONS[code], "message": message}, code)
