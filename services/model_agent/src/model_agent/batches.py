"""Gathers instances of requests into batches, and gives each request its own predictions."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, bytes]
"""A status, and a body."""
Predict = Callable[[str, bytes], Awaitable[Answer]]


@dataclass(slots=True)
class _Batch:
    instances: list[Any] = field(default_factory=list)
    asking: list[tuple[int, int, "asyncio.Future[Answer]"]] = field(default_factory=list)
    """From which instance to which it is whose."""
    due: asyncio.TimerHandle | None = None


class Batches:
    """Asks ``predict(path, body)`` for a batch once it has ``largest`` instances, or its first has waited ``latency_seconds``."""

    def __init__(self, predict: Predict, largest: int, latency_seconds: float) -> None:
        self._predict, self._largest, self._latency_seconds = predict, largest, latency_seconds
        self._gathering: dict[str, _Batch] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, path: str, instances: list[Any]) -> Answer:
        """The answer to ``instances``, in whatever batch they go."""
        loop = asyncio.get_running_loop()
        batch = self._gathering.get(path)
        if batch is None:
            batch = self._gathering[path] = _Batch()
            batch.due = loop.call_later(self._latency_seconds, self._send, path)
        answer: asyncio.Future[Answer] = loop.create_future()
        start = len(batch.instances)
        batch.instances.extend(instances)
        batch.asking.append((start, len(batch.instances), answer))
        if len(batch.instances) >= self._largest:
            self._send(path)
        return await answer

    async def drain(self) -> None:
        """Send what was gathered, and wait until all is answered."""
        for path in list(self._gathering):
            self._send(path)
        await asyncio.gather(*self._running)

    def _send(self, path: str) -> None:
        batch = self._gathering.pop(path)
        if batch.due is not None:
            batch.due.cancel()
        task = asyncio.create_task(self._answer(path, batch))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, path: str, batch: _Batch) -> None:
        number = str(uuid.uuid4())
        status, body, predictions = 200, b"", list[Any]()
        try:
            status, body = await self._predict(path, json.dumps({"instances": batch.instances}).encode())
            if status == 200:
                predictions = json.loads(body)["predictions"]
                if len(predictions) != len(batch.instances):
                    said = f"{len(predictions)} predictions came for {len(batch.instances)} instances"
                    status, body = 502, _message(said, number)
        except (ValueError, KeyError, TypeError) as error:
            status, body = 502, _message(f"the answer of the server is no prediction: {error!r}", number)
        except Exception as error:  # whoever waits is told, whatever it was
            status, body = 502, _message(f"{type(error).__name__}: {error}", number)
        for start, end, answer in batch.asking:
            if not answer.done():  # else whoever asked is gone
                own = {"message": "", "batchId": number, "predictions": predictions[start:end]}
                answer.set_result((status, json.dumps(own).encode() if status == 200 else body))


def _message(said: str, number: str) -> bytes:
    return json.dumps({"message": said, "batchId": number, "predictions": None}).encode()
