"""The connection of a plug-in to its runtime: two logical ones in one socket, on each requests and answers by ttrpc.

A frame of the socket is the number of a connection and a length (both 32 bits, big endian), then the content. A message of ttrpc
is its length, the number of its stream, its kind and flags (10 bytes), then a Request or a Response. On the first connection the
runtime asks the plug-in, on the second the plug-in the runtime.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

from node_agent.nri import wire

_log = logging.getLogger(__name__)

OF_PLUGIN, OF_RUNTIME = 1, 2
_REQUEST, _RESPONSE = 1, 2
_FRAME, _HEAD = struct.Struct(">II"), struct.Struct(">IIBB")
_MOST_BYTES = 4 << 20
_UNIMPLEMENTED, _INTERNAL = 12, 13

Answer = Callable[[str, bytes], Awaitable[bytes]]
"""The answer to a method, both as messages. Raises Unimplemented."""


class Unimplemented(Exception):
    """The other side asks for what this one does not know."""


class Refused(Exception):
    """The other side answered with an error."""


class Link:
    """One socket. ``answer`` answers what the runtime asks for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        self._reader, self._writer, self._answer = reader, writer, answer
        self._parts: dict[int, bytearray] = {OF_PLUGIN: bytearray(), OF_RUNTIME: bytearray()}
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._replying: set[asyncio.Task[None]] = set()
        self._stream = -1
        """Streams of whoever asks have odd numbers."""

    async def run(self) -> None:
        """Read until the other side hangs up; raises OSError, or ValueError for what is no frame."""
        try:
            while True:
                connection, length = _FRAME.unpack(await self._reader.readexactly(_FRAME.size))
                if length > _MOST_BYTES + _HEAD.size:
                    raise ValueError(f"a frame of {length} bytes")
                content = await self._reader.readexactly(length)
                if connection in self._parts:
                    self._parts[connection] += content
                    self._take(connection)
        except asyncio.IncompleteReadError:
            return
        finally:
            for waiting in self._waiting.values():
                waiting.cancel()
            for replying in self._replying:
                replying.cancel()
            self._writer.close()

    async def call(self, service: str, method: str, payload: bytes, seconds: float = 5.0) -> bytes:
        """Ask the runtime; raises Refused, and TimeoutError."""
        self._stream += 2
        stream, done = self._stream, asyncio.get_running_loop().create_future()
        self._waiting[stream] = done
        request = wire.text(1, service) + wire.text(2, method) + wire.message(3, payload)
        try:
            await self._send(OF_RUNTIME, stream, _REQUEST, request + wire.number(4, int(seconds * 1e9)))
            async with asyncio.timeout(seconds):
                found: bytes = await done
                return found
        finally:
            del self._waiting[stream]

    def _take(self, connection: int) -> None:
        """All messages that are complete. Nobody waits for the answer to somebody else's."""
        part = self._parts[connection]
        while len(part) >= _HEAD.size:
            length, stream, kind, _ = _HEAD.unpack_from(part)
            if length > _MOST_BYTES:
                raise ValueError(f"a message of {length} bytes")
            if len(part) < _HEAD.size + length:
                return
            content = bytes(part[_HEAD.size : _HEAD.size + length])
            del part[: _HEAD.size + length]
            if kind == _REQUEST:
                task = asyncio.create_task(self._reply(connection, stream, wire.fields(content)))
                self._replying.add(task)
                task.add_done_callback(self._replying.discard)
            elif kind == _RESPONSE:
                self._settle(stream, wire.fields(content))

    async def _reply(self, connection: int, stream: int, request: wire.Fields) -> None:
        method = wire.word(request, 2)
        try:
            response = wire.message(2, await self._answer(method, wire.inner(request, 3)))
        except Unimplemented:
            response = _error(_UNIMPLEMENTED, f"{method} is not known here")
        except Exception as error:  # an error in here must not take a container its start
            _log.exception("nri_request_failed", extra={"method": method})
            response = _error(_INTERNAL, f"{type(error).__name__}: {error}")
        with suppress(OSError):  # who asked has hung up
            await self._send(connection, stream, _RESPONSE, response)

    def _settle(self, stream: int, response: wire.Fields) -> None:
        waiting = self._waiting.get(stream)
        if waiting is None or waiting.done():
            return
        status = wire.fields(wire.inner(response, 1))
        if wire.whole(status, 1):
            waiting.set_exception(Refused(wire.word(status, 2)))
        else:
            waiting.set_result(wire.inner(response, 2))

    async def _send(self, connection: int, stream: int, kind: int, content: bytes) -> None:
        message = _HEAD.pack(len(content), stream, kind, 0) + content
        self._writer.write(_FRAME.pack(connection, len(message)) + message)
        await self._writer.drain()


def _error(code: int, words: str) -> bytes:
    return wire.message(1, wire.number(1, code) + wire.text(2, words))
