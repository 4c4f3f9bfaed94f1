"""The webhooks' server: answers the reviews of an API server from the view of the facts, over TLS."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson
from aiohttp import web

from admission.domain.node_review import answer_node
from admission.domain.pod_review import SchedulerRule, choose_scheduler, shape_pod
from admission.domain.webhook import answer_pod
from admission.domain.world import Review
from admission.view import View
from admission.webhooks.certificate_keeper import CertificateKeeper, Serving, load_into
from admission.webhooks.judge import Judge
from admission.webhooks.registration import MUTATE, NODES, PODS, PROFILES, SCHEDULER, VALIDATE
from kube import Key, Manifest

LARGEST_REVIEW = 8 << 20

Answering = Callable[[Manifest], Awaitable[Manifest]]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens."""

    host: str
    port: int


class WebhookServer:
    """Admission, as an API server asks for it. Served with the certificate that ``keeper`` has, from each new connection on."""

    def __init__(self, view: View, keeper: CertificateKeeper, address: Address, rule: SchedulerRule | None) -> None:
        self._view, self._keeper, self._address, self._rule = view, keeper, address, rule
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        keeper.renewed.append(self._load)
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Serve for ever. Reviews are answered once the state of the cluster is known."""
        await self._view.ready.wait()
        await self._keeper.ready.wait()
        app = web.Application(client_max_size=LARGEST_REVIEW)
        for path, answering in self._answers().items():
            app.router.add_post(path, _handler(answering))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._address.host, self._address.port, ssl_context=self._context).start()
            self.ready.set()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    def _answers(self) -> dict[str, Answering]:
        """By path. The view's store is the same one for good once it is ready."""
        store, judge = self._view.store, Judge(self._view)

        async def mutate(review: Manifest) -> Manifest:
            return await judge.judged(review, patch=True)

        async def validate(review: Manifest) -> Manifest:
            return await judge.judged(review, patch=False)

        async def profiles(review: Manifest) -> Manifest:
            """Profiles choose by the labels of the namespace."""
            if namespace := review["request"].get("namespace"):
                await judge.heard_of({Key("Namespace", "", namespace)})
            return answer_pod(review, store, [shape_pod])

        async def scheduler(review: Manifest) -> Manifest:
            return answer_pod(review, store, [self._choose])

        async def pods(review: Manifest) -> Manifest:
            return answer_pod(review, store, [])

        async def nodes(review: Manifest) -> Manifest:
            return answer_node(review)

        return {
            MUTATE: mutate,
            VALIDATE: validate,
            PROFILES: profiles,
            SCHEDULER: scheduler,
            PODS: pods,
            NODES: nodes,
        }

    def _choose(self, review: Review) -> None:
        if self._rule is not None:
            choose_scheduler(review, self._rule.scheduler)

    def _load(self, serving: Serving) -> None:
        load_into(self._context, serving)


def _handler(answering: Answering) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler of one path: JSON in, JSON out."""

    async def handle(request: web.Request) -> web.Response:
        try:
            told = await answering(orjson.loads(await request.read()))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            return web.Response(status=400, text=f"not an AdmissionReview: {type(error).__name__}: {error}")
        return web.Response(body=orjson.dumps(told), content_type="application/json")

    return handle
