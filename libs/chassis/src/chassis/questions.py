"""Questions that a core answers on the bus."""

import orjson

from bus import Subscription
from bus.ports import Handler
from chassis.alarm import ticks
from chassis.core import Core
from chassis.quarantine import Quarantine
from chassis.role import Role, Workplace
from kube import Key
from tidegate import subjects


class Questions:
    """Answers what ``role`` answers, from the present state of the core; of what is kept aside it says so."""

    def __init__(self, role: Role, workplace: Workplace, core: Core, quarantine: Quarantine) -> None:
        self._role, self._bus, self._now = role, workplace.bus, workplace.clock.now
        self._core, self._quarantine = core, quarantine
        self._serving: list[Subscription] = []

    async def serve(self) -> None:
        """Begin to answer."""
        for name in self._role.queries:
            question = subjects.question(self._role.service, name)
            self._serving.append(await self._bus.serve(question, self._answer(name)))

    async def stop(self) -> None:
        """Answer no more."""
        for serving in self._serving:
            await serving.stop()

    def _answer(self, name: str) -> Handler:
        async def answer(payload: bytes) -> bytes:
            question = {"now": self._now(), **orjson.loads(payload)}
            content = self._core.query(name, question)
            about = Key(*(str(question.get(part) or "") for part in ("kind", "namespace", "name")))
            if aside := self._quarantine.about(about, ticks()):
                content = {**content, "verdict": "SetAside", "rule": "", "message": aside}
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)

        return answer
