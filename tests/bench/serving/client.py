"""Asks by HTTP/1.1, at times that do not depend on answers, and never a second time: what is lost stays lost."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

PATIENCE = 60.0
"""Seconds until a request counts as lost."""
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Answer:
    """When a request was to be sent (seconds from the start), how long its answer took from then, and its status; 0 where none came."""

    due: float
    seconds: float
    status: int


class Client:
    """Asks a server for one thing, over as many connections as there are requests under way."""

    def __init__(self, address: str, host: str, path: str, body: bytes = b"") -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        lines = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}"]
        self._request = "\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode() + body
        self._idle: list[Connection] = []

    async def play(self, times: Iterable[float], began: float) -> list[Answer]:
        """Ask at each of ``times``, seconds after ``began`` of the monotonic clock."""
        asked: list[asyncio.Task[Answer]] = []
        for due in times:
            await asyncio.sleep(began + due - time.monotonic())
            asked.append(asyncio.create_task(self._ask_at(due, began)))
        return await asyncio.gather(*asked)

    async def _ask_at(self, due: float, began: float) -> Answer:
        try:
            async with asyncio.timeout(PATIENCE):
                status, _ = await self.ask()
        except (OSError, EOFError, TimeoutError):
            status = 0
        return Answer(due, time.monotonic() - began - due, status)

    async def ask(self) -> tuple[int, bytes]:
        """Status and body. Raises OSError or EOFError where there is no answer."""
        connection = self._idle.pop() if self._idle else await asyncio.open_connection(self._host, self._port)
        reader, writer = connection
        try:
            writer.write(self._request)
            answer = await _read(reader)
        except BaseException:
            writer.close()
            raise
        self._idle.append(connection)
        return answer

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(status.split()[1]), body
