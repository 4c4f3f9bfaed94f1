"""HTTP/1.1 over kept connections: one request at a time on each, as many connections as there are requests at one time.

Only what an API server needs is here. A request costs less than half of what it does with a client that can do everything
(docs/adr/0030-bursts-on-kubernetes.md has the numbers).
"""

import asyncio
import contextlib
import ssl
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_HEAD_BYTES = 1 << 16
_BODILESS = (204, 304)


class Reply(NamedTuple):
    """``headers`` have lower-case names."""

    code: int
    headers: dict[bytes, bytes]
    body: bytes


class BadReply(OSError):
    """What came is no HTTP/1.1."""


class _Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass(slots=True)
class Connections:
    """Connections to one server, kept while nothing is asked. ``authority`` is what the server is called in requests."""

    host: str
    port: int
    authority: str
    tls: ssl.SSLContext | None
    _idle: deque[_Connection] = field(default_factory=deque)

    async def ask(self, method: str, target: str, headers: str, body: bytes) -> Reply:
        """The reply to one request; ``headers`` are whole lines. Raises OSError or EOFError when none comes.

        Nothing is asked twice: a server may have done what it gave no answer to.
        """
        connection = self._take() or await self._open()
        kept = False
        try:
            head = (
                f"{method} {target} HTTP/1.1\r\nHost: {self.authority}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
            )
            connection.writer.write(head.encode() + body)
            reply = await _reply(connection.reader)
            kept = reply.headers.get(b"connection", b"").lower() != b"close"
            return reply
        finally:
            if kept:
                self._idle.append(connection)
            else:
                connection.writer.close()

    async def close(self) -> None:
        """Give up all connections."""
        while self._idle:
            writer = self._idle.pop().writer
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _take(self) -> _Connection | None:
        """The one that was used last: those that are not needed are closed by the server after a while."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.reader.at_eof() and not connection.writer.is_closing():
                return connection
            connection.writer.close()
        return None

    async def _open(self) -> _Connection:
        return _Connection(*await asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=MOST_HEAD_BYTES))


async def _reply(reader: asyncio.StreamReader) -> Reply:
    code, headers = _head(await _lines(reader))
    while code < 200:
        code, headers = _head(await _lines(reader))
    if code in _BODILESS:
        return Reply(code, headers, b"")
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        return Reply(code, headers, await _chunks(reader))
    if b"content-length" in headers:
        return Reply(code, headers, await reader.readexactly(_number(headers[b"content-length"], 10)))
    headers[b"connection"] = b"close"
    return Reply(code, headers, await reader.read())


async def _lines(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise BadReply(f"the head of a reply has more than {MOST_HEAD_BYTES} bytes") from error


def _head(content: bytes) -> tuple[int, dict[bytes, bytes]]:
    first, *rest = content[:-4].split(b"\r\n")
    version, _, code = first.partition(b" ")
    if not version.startswith(b"HTTP/1."):
        raise BadReply(f"a reply begins with {first[:60]!r}")
    headers = {}
    for line in rest:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    return _number(code[:3], 10), headers


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := _number((await reader.readuntil(b"\r\n")).partition(b";")[0].strip(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":  # trailers say nothing that is wanted
        continue
    return b"".join(parts)


def _number(text: bytes, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise BadReply(f"{text[:60]!r} is no number") from None
