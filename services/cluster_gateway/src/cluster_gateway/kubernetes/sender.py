"""Requests until there is an answer: an API server that is away, overloaded or starting is asked again.

All requests of the gateway can be made twice. What is asked again for ever is what nothing was said to; a server that goes on
answering with an error of its own, a webhook that it cannot reach for instance, is believed after ``PATIENCE_SECONDS``: its
answer is the outcome then, and the decider decides again on what is so.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.api import Answer, Api, ApiRequest, Unreachable

log = logging.getLogger(__name__)

CONFLICT, TOO_MANY, BROKEN = 409, 429, 500
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
PATIENCE_SECONDS = 30.0
HELD_PAUSE = 0.1
BUDGET = "DisruptionBudget"
"""The cause that an eviction is refused with when a disruption budget forbids it."""

QUOTAS = "resourcequotas"


@dataclass(slots=True)
class Sender:
    """``may_act`` says whether nobody else can be carrying out decisions at this moment: nothing is sent while it is False."""

    api: Api
    may_act: Callable[[], bool]

    async def send(self, request: ApiRequest) -> Answer:
        """The answer to ``request``."""
        clock = asyncio.get_running_loop().time
        pause, began = FIRST_PAUSE, clock()
        while True:
            while not self.may_act():
                await asyncio.sleep(HELD_PAUSE)
            try:
                answer = await self.api.send(request)
                if not _worth_asking_again(answer) or (answer.code == BROKEN and clock() - began > PATIENCE_SECONDS):
                    return answer
                pause = max(pause, answer.retry_after)
                log.warning(
                    "request_delayed",
                    extra={
                        "request": f"{request.method} {request.path}",
                        "code": answer.code,
                        "detail": answer.message,
                        "pause": pause,
                    },
                )
            except Unreachable as error:
                log.warning("server_unreachable", extra={"detail": str(error)})
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _worth_asking_again(answer: Answer) -> bool:
    if answer.code == TOO_MANY:
        return not answer.has_cause(BUDGET)
    if answer.code == CONFLICT:
        return (answer.body.get("details") or {}).get("kind") == QUOTAS
    return answer.code >= BROKEN
