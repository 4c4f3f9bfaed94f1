"""Whom the proxy asks about requests that no replica can answer yet: each waits here, without its body, until one can."""

import asyncio

from aiohttp import web

from inference_gateway.adapters.conductor import Conductor
from inference_gateway.adapters.unix_site import serve
from inference_gateway.domain.envoy.layout import ASKED, HELD, LATER, SHARE
from inference_gateway.domain.holding import Goal, Refusal, Waiting, goal_of, too_late
from inference_gateway.domain.serving.directory import Directory

RETRY_SECONDS = "5"
PACE_SECONDS = 0.001
"""Between two requests that go on. Each opens connections, and a server has a short queue for those: all at once would overrun it."""
AGAIN_SECONDS = 0.05
"""How long a request waits that has waited before, times how often."""


class Activator:
    """Answers 200 as soon as the proxy knows a replica that is ready. ``woken`` is set when a request begins to wait."""

    def __init__(self, directory: Directory, conductor: Conductor, waiting: Waiting) -> None:
        self._directory, self._conductor, self.waiting = directory, conductor, waiting
        self.woken = asyncio.Event()
        self.handed_on = 0
        self.refused = 0
        self._next = 0.0

    async def serve(self, socket: str) -> None:
        """Listen on ``socket``, for ever."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        await serve(application, socket)

    async def _answer(self, request: web.Request) -> web.Response:
        await self._conductor.ready.wait()
        share = request.headers.get(SHARE, "0")
        number = int(share) if share.isdigit() else 0
        host = request.headers.get(ASKED, request.host)
        rounds = int(request.headers.get(HELD, "0"))
        if rounds:  # The proxy has lost a replica that it just had: it hears of another one soon.
            await asyncio.sleep(min(AGAIN_SECONDS * rounds, 1.0))
        found = await self._wait(host, request.rel_url.raw_path_qs, number)
        if found is None:
            await self._turn()
            self.handed_on += 1
            return web.Response(headers={HELD: str(rounds + 1)})
        self.refused += 1
        if found.status != 503:
            return web.json_response(found.body, status=found.status)
        return web.json_response(found.body, status=LATER, headers={"retry-after": RETRY_SECONDS})

    async def _turn(self) -> None:
        """Return when it is the turn of one that goes on: one after the other, in the order in which they asked."""
        now = asyncio.get_running_loop().time()
        turn = self._next = max(self._next + PACE_SECONDS, now)
        if turn > now:
            await asyncio.sleep(turn - now)

    async def _wait(self, host: str, path: str, number: int) -> Refusal | None:
        """None once it may go on. What it waits for is looked up again whenever something changes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.waiting.bounds.seconds
        while True:
            goal = goal_of(self._directory, host, path, number)
            if isinstance(goal, Refusal):
                return goal
            if goal.pool in self._conductor.routable:
                return None
            if refusal := await self._wait_once(goal, until - loop.time()):
                return refusal

    async def _wait_once(self, goal: Goal, seconds: float) -> Refusal | None:
        if seconds <= 0:
            return too_late(goal, self.waiting.bounds.seconds)
        if refusal := self.waiting.enter(goal):
            return refusal
        self.woken.set()
        try:
            await asyncio.wait_for(self._conductor.news(), seconds)
        except TimeoutError:
            return too_late(goal, self.waiting.bounds.seconds)
        finally:
            self.waiting.leave(goal)
        return None
