"""Clients that ask a service at a steady rate, for as long as a test is at something else."""

import asyncio
import threading
import time
from collections.abc import Iterator
from types import TracebackType

from tests.bench.serving.client import Answer, Client


class SteadyLoad:
    """Asks ``rate`` times a second from entering it to leaving it; then all ``answers`` are there."""

    def __init__(self, client: Client, rate: float) -> None:
        self._client, self._rate = client, rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answers: list[Answer] = []

    def __enter__(self) -> "SteadyLoad":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def lost(self) -> list[Answer]:
        """The requests that nobody answered as they should be."""
        return [one for one in self.answers if one.status != 200]

    def _run(self) -> None:
        self.answers = asyncio.run(self._play())

    async def _play(self) -> list[Answer]:
        try:
            return await self._client.play(self._times(), time.monotonic())
        finally:
            self._client.close()

    def _times(self) -> Iterator[float]:
        number = 0
        while not self._over.is_set():
            yield number / self._rate
            number += 1
