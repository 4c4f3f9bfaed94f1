"""Admission's shell beside a real gateway, on the bus in memory under virtual time."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest

from admission.applier import Applier, Change, Result
from admission.reads import Reads
from admission.view import View
from bus import MemoryBus
from chassis import LoopClock
from chassis.virtual_time import VirtualLoop
from cluster_gateway.gateway import Gateway
from cluster_gateway.secrets import MemorySecrets
from cluster_gateway.settings import GatewaySettings
from kube import Key, Manifest, Object
from tidegate import subjects
from tidegate.gateway.v1 import gateway_pb2


class WatchedBus(MemoryBus):
    """``asked`` are the writes that went over it; ``before`` happens before the next one is handed on, once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[gateway_pb2.WriteRequest] = []
        self.before: Callable[[], Awaitable[None]] | None = None

    async def request(self, subject: str, payload: bytes, *, timeout: float = 5.0) -> bytes:
        if subject == subjects.WRITE:
            self.asked.append(gateway_pb2.WriteRequest.FromString(payload))
            if self.before is not None:
                before, self.before = self.before, None
                await before()
        return await super().request(subject, payload, timeout=timeout)


class Desk:
    """Where users come with what they want."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        asyncio.set_event_loop(self.loop)
        self.bus, self._uids = WatchedBus(), itertools.count(1)
        self.start_gateway()
        self.view = View(self.bus)
        self.applier, self.reads = Applier(self.bus, self.view), Reads(self.view)
        self.tasks = [self.loop.create_task(work) for work in (self.view.run(), self.applier.run())]
        self.loop.settle()

    def start_gateway(self) -> None:
        self.gateway = Gateway(
            self.bus, LoopClock(), GatewaySettings(services=()), MemorySecrets(), lambda: f"uid-{next(self._uids)}"
        )
        self.gateway_task = self.loop.create_task(self.gateway.run())
        self.loop.settle()

    def kill_gateway(self) -> None:
        self.gateway_task.cancel()
        self.loop.settle()

    def begin(self, work: Coroutine[Any, Any, Any]) -> Any:
        task = self.loop.create_task(work)
        self.loop.settle()
        return task

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.begin(work).result()

    def ask(self, *changes: Change, actor: str = "ann") -> Any:
        """The task of one request; nothing has happened yet."""
        return self.loop.create_task(self.applier.apply(actor, changes))

    def apply(self, *manifests: Manifest, **options: bool) -> list[Result]:
        results, revision = self.do(self.applier.apply("ann", [Change(item, **options) for item in manifests]))
        assert revision <= self.view.revision
        return results  # type: ignore[no-any-return]

    def delete(self, *keys: Key) -> list[Result]:
        return self.do(self.applier.apply("ann", [Change(delete=key) for key in keys]))[0]  # type: ignore[no-any-return]

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        return self.view.store.get(Key(kind, namespace, name))

    def enact(self, action: Callable[[Any], object]) -> None:
        self.do(self.gateway.enact(action))

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()
        asyncio.set_event_loop(None)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()
