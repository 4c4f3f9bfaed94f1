"""Tells of requests and answers by CloudEvents over HTTP, in binary form, without holding anybody up."""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import ClientError, ClientSession, ClientTimeout

REQUEST, RESPONSE = "org.kubeflow.serving.inference.request", "org.kubeflow.serving.inference.response"
QUEUED = 100
_TIMEOUT = ClientTimeout(total=10)


@dataclass(frozen=True, slots=True)
class Told:
    """What every event says: where it goes, and of what it tells."""

    url: str
    mode: str = "all"
    source: str = ""
    service: str = ""
    namespace: str = ""
    endpoint: str = ""
    component: str = ""
    metadata_headers: tuple[str, ...] = ()


class Events:
    """A queue of events that are on their way to ``told.url``."""

    def __init__(self, told: Told) -> None:
        self.told, self.dropped = told, 0
        self._queue: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue(QUEUED)

    def tell(self, kind: str, number: str, headers: Mapping[str, str], body: bytes) -> None:
        """Put an event into the queue, if it is wanted and there is room."""
        told = self.told
        if told.mode not in ("all", kind.rpartition(".")[2]):
            return
        wanted = {name.lower() for name in told.metadata_headers}
        metadata = {name: [value] for name, value in headers.items() if name.lower() in wanted}
        event = {
            "ce-specversion": "1.0",
            "ce-id": number,
            "ce-type": kind,
            "ce-source": told.source,
            "ce-time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "ce-inferenceservicename": told.service,
            "ce-namespace": told.namespace,
            "ce-component": told.component,
            "ce-endpoint": told.endpoint,
            "ce-metadata": json.dumps(metadata),
            "content-type": headers.get("Content-Type") or "application/json",
        }
        try:
            self._queue.put_nowait((event, body))
        except asyncio.QueueFull:
            self.dropped += 1
            print(f"an event for {told.url} is dropped: {QUEUED} wait already ({self.dropped} so far)", file=sys.stderr)

    async def run(self) -> None:
        """Send them, one after the other, until cancelled."""
        async with ClientSession(timeout=_TIMEOUT) as session:
            while True:
                event, body = await self._queue.get()
                try:
                    async with session.post(self.told.url, data=body, headers=event) as answer:
                        if answer.status >= 300:
                            print(f"{self.told.url} answered an event with {answer.status}", file=sys.stderr)
                except (ClientError, TimeoutError) as error:
                    print(f"an event does not reach {self.told.url}: {error!r}", file=sys.stderr)
                finally:
                    self._queue.task_done()

    async def drain(self, seconds: float) -> None:
        """Wait until all are sent, for so long."""
        try:
            await asyncio.wait_for(self._queue.join(), seconds)
        except TimeoutError:
            print(f"{self._queue.qsize()} events for {self.told.url} are lost", file=sys.stderr)
