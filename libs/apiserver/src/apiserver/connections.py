"""HTTP/1.1 over kept connections: one request or one stream at a time on each, as many connections as are asked for at one time.

Only what an API server needs is here. A request costs less than half of what it does with a client that can do everything
(docs/adr/0030-bursts-on-kubernetes.md has the numbers).
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_HEAD_BYTES = 1 << 16
PIECE_BYTES = 1 << 16
"""Of a stream so much is taken at one time; twice as much is read ahead of who takes it."""
_BODILESS = (204, 304)
_LENGTH = b"content-length"


class Reply(NamedTuple):
    """``headers`` have lower-case names."""

    code: int
    headers: dict[bytes, bytes]
    body: bytes


class BadReply(OSError):
    """What came is no HTTP/1.1."""


class _Protocol(asyncio.StreamReaderProtocol):
    """Can cut its connection, and tells when that has ended."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.ended = asyncio.Event()
        self._made: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._made = transport

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.ended.set()

    def cut(self) -> None:
        """End it at once: over TLS a proper end waits for the other side, and nothing more is to be said."""
        if self._made is not None:
            self._made.abort()


class _Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: _Protocol


@dataclass(slots=True)
class Connections:
    """Connections to one server, kept while nothing is asked. ``authority`` is what the server is called in requests."""

    host: str
    port: int
    authority: str
    tls: ssl.SSLContext | None
    _idle: deque[_Connection] = field(default_factory=deque)
    _open: set[_Connection] = field(default_factory=set)
    """All that have not ended, idle and in use."""
    _closed: bool = False

    async def ask(self, method: str, target: str, headers: str, body: bytes) -> Reply:
        """The reply to one request; ``headers`` are whole lines. Raises OSError or EOFError when none comes.

        Nothing is asked twice: a server may have done what it gave no answer to.
        """
        connection = self._take() or await self._connect()
        kept = False
        try:
            connection.writer.write(self._asking(method, target, headers, body) + body)
            code, found = await _answered(connection.reader)
            parts = [part async for part in _body(connection.reader, code, found)]
            kept = _is_kept(code, found)
            return Reply(code, found, b"".join(parts))
        finally:
            self._give_back(connection, kept)

    @asynccontextmanager
    async def stream(
        self, target: str, headers: str, silence: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """A GET whose reply is read as it comes: its code, and its body in the pieces that have come.

        Raises OSError or EOFError when none comes or it breaks, TimeoutError after ``silence`` seconds without a byte.
        """
        async with asyncio.timeout(silence):
            connection = self._take() or await self._connect()
        try:
            connection.writer.write(self._asking("GET", target, headers, b""))
            async with asyncio.timeout(silence):
                code, found = await _answered(connection.reader)
            yield code, _within(silence, _body(connection.reader, code, found))
        finally:
            self._give_back(connection, False)

    async def close(self) -> None:
        """Cut all connections, also those in use; returns when they have ended."""
        self._closed = True
        self._idle.clear()
        for connection in (ending := list(self._open)):
            connection.protocol.cut()
        for connection in ending:
            await connection.protocol.ended.wait()

    def _asking(self, method: str, target: str, headers: str, body: bytes) -> bytes:
        lines = f"{method} {target} HTTP/1.1\r\nHost: {self.authority}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        return lines.encode()

    def _take(self) -> _Connection | None:
        """The one that was used last: those that are not needed are closed by the server after a while."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.reader.at_eof() and not connection.writer.is_closing():
                return connection
            self._give_back(connection, False)
        return None

    def _give_back(self, connection: _Connection, kept: bool) -> None:
        if kept:
            self._idle.append(connection)
        else:
            connection.protocol.cut()

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MOST_HEAD_BYTES, loop)
        protocol = _Protocol(reader)
        try:
            transport, _ = await loop.create_connection(lambda: protocol, self.host, self.port, ssl=self.tls)
        except asyncio.CancelledError:
            protocol.cut()  # it may be made already: then asyncio has begun a proper end, of which nobody would wait for the rest
            raise
        connection = _Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop), protocol)
        self._open = {one for one in self._open if not one.protocol.ended.is_set()} | {connection}
        if self._closed:
            protocol.cut()
            raise ConnectionAbortedError("the connections were closed")
        return connection


async def _answered(reader: asyncio.StreamReader) -> tuple[int, dict[bytes, bytes]]:
    """The code and the headers of a reply."""
    code, headers = _head(await _lines(reader))
    while code < 200:
        code, headers = _head(await _lines(reader))
    return code, headers


async def _body(reader: asyncio.StreamReader, code: int, headers: Mapping[bytes, bytes]) -> AsyncIterator[bytes]:
    """What follows the headers, in the pieces that have come."""
    if code in _BODILESS:
        return
    if _is_chunked(headers):
        chunks = Chunks()
        while not chunks.ended:
            if piece := chunks.take(await _some(reader, PIECE_BYTES)):
                yield piece
    elif _LENGTH in headers:
        left = _number(headers[_LENGTH], 10)
        while left:
            yield (piece := await _some(reader, min(left, PIECE_BYTES)))
            left -= len(piece)
    else:
        while piece := await reader.read(PIECE_BYTES):
            yield piece


async def _within(silence: float, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces. Raises TimeoutError when none comes for ``silence`` seconds."""
    while True:
        async with asyncio.timeout(silence):
            piece = await anext(pieces, b"")
        if not piece:
            return
        yield piece


def _is_kept(code: int, headers: Mapping[bytes, bytes]) -> bool:
    """Whether the connection can be used again after such a reply: both sides know where it ended."""
    framed = code in _BODILESS or _is_chunked(headers) or _LENGTH in headers
    return framed and headers.get(b"connection", b"").lower() != b"close"


def _is_chunked(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"transfer-encoding", b"").lower() == b"chunked"


async def _some(reader: asyncio.StreamReader, most: int) -> bytes:
    """Bytes, as soon as there are any. Raises EOFError when none come any more."""
    if piece := await reader.read(most):
        return piece
    raise asyncio.IncompleteReadError(b"", None)


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


@dataclass(slots=True)
class Chunks:
    """Takes a chunked body out of its frames, however these are cut."""

    ended: bool = False
    _left: int = 0
    """Bytes of the present chunk that are to come."""
    _line: bytes = b""
    """The part of a line that has come."""
    _is_last: bool = False

    def take(self, data: bytes) -> bytes:
        """What of the body is in ``data``. Raises BadReply."""
        data, at, parts = self._line + data, 0, []
        self._line = b""
        while at < len(data) and not self.ended:
            if self._left:
                parts.append(data[at : at + self._left])
                at += len(parts[-1])
                self._left -= len(parts[-1])
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line = data[at:]
                break
            self._read(data[at:end].strip())
            at = end + 1
        return b"".join(parts)

    def _read(self, line: bytes) -> None:
        """A line outside of chunks: a size, the empty one behind a chunk, or after the last one trailers, then an empty one."""
        if self._is_last:
            self.ended = not line
        elif line:
            self._left = _number(line.partition(b";")[0].strip(), 16)
            self._is_last = not self._left


def _number(text: bytes, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise BadReply(f"{text[:60]!r} is no number") from None
