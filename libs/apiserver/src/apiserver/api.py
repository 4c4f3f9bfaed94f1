"""Requests to an API server: JSON over kept connections, errors as what they mean, streams as bytes of lines."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import orjson

from apiserver.access import Access
from apiserver.connections import Connections
from kube import Manifest

CONNECTIONS = 64
"""Requests at one time: more gain nothing on an API server of few cores, and its priority levels would queue them."""
SECONDS = 30
"""After which an answer that did not come is taken to be lost."""
UNAUTHORIZED = 401
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
_PATH = "/:@!$&'()*+,;=~%"
"""What stands in paths as it is."""
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Unreachable(Exception):
    """No answer came: it is not known whether the request was carried out."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request. ``path`` begins with a slash; ``content`` is the media type of ``body``.

    ``headers`` are sent besides those that every request has.
    """

    method: str
    path: str
    body: Manifest | None = None
    parameters: Mapping[str, str] | None = None
    content: str = JSON
    headers: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What an API server said: an object, or a Status that tells why not. ``retry_after`` is in seconds, 0 where not said."""

    code: int
    body: Manifest
    retry_after: float = 0

    @property
    def ok(self) -> bool:
        return self.code < 300

    @property
    def message(self) -> str:
        """The server's own sentence."""
        return str(self.body.get("message") or f"the API server answered {self.code}")

    @property
    def reason(self) -> str:
        """The server's stable word, such as ``AlreadyExists``."""
        return str(self.body.get("reason") or "")

    def has_cause(self, name: str) -> bool:
        """Whether ``name`` is among the causes."""
        return any(cause.get("reason") == name for cause in (self.body.get("details") or {}).get("causes") or ())


class Api:
    """An API server. Open it with ``async with``, or by ``open`` and ``close``."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._connections: Connections | None = None

    async def __aenter__(self) -> "Api":
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def open(self) -> None:
        """Make the pools of connections, one for requests and one for streams; none is opened before the first request."""
        context = self._access.ssl_context()
        address = urlsplit(self._access.host)
        port = address.port or (80 if context is None else 443)
        self._connections = Connections(address.hostname or "", port, address.netloc, context)
        connector = aiohttp.TCPConnector(limit=0, ssl=True if context is None else context)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)

    async def close(self) -> None:
        """Close its connections."""
        assert self._session is not None and self._connections is not None
        await self._session.close()
        await self._connections.close()

    async def send(self, request: ApiRequest) -> Answer:
        """The answer to ``request``, whatever it is. Raises Unreachable when there is none."""
        answer = await self._send(request)
        if answer.code == UNAUTHORIZED:
            await self._access.renew()
            answer = await self._send(request)
        return answer

    async def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Answer:
        """The answer to a GET. Raises Unreachable."""
        return await self.send(ApiRequest("GET", path, parameters=parameters))

    async def _send(self, request: ApiRequest) -> Answer:
        assert self._connections is not None, "it is opened before the first request"
        headers = await self._access.headers()
        data = b"" if request.body is None else orjson.dumps(request.body)
        if data:
            headers["Content-Type"] = request.content
        lines = "".join(f"{name}: {value}\r\n" for name, value in [*headers.items(), *request.headers])
        try:
            async with asyncio.timeout(SECONDS):
                reply = await self._connections.ask(request.method, self._target(request), lines, data)
            return Answer(reply.code, _parsed(reply.body), _seconds(reply.headers.get(b"retry-after")))
        except (TimeoutError, OSError, EOFError) as error:
            raise Unreachable(f"{request.method} {request.path}: {type(error).__name__}: {error}") from error

    def _target(self, request: ApiRequest) -> str:
        path = urlsplit(self._access.host).path + quote(request.path, safe=_PATH)
        return f"{path}?{urlencode(request.parameters)}" if request.parameters else path

    async def lines(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[list[bytes]]:
        """The lines of a stream, as many at a time as have come; nothing is read ahead of who takes them.

        Ends when the server ends it. Raises Unreachable, also after ``silence`` seconds without a byte; Refused for an error.
        """
        assert self._session is not None, "it is opened before the first request"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=SECONDS, sock_read=silence)
        headers = await self._access.headers()
        try:
            async with self._session.get(
                self._access.host + path, params=parameters, headers=headers, timeout=timeout
            ) as response:
                if response.status != 200:
                    if response.status == UNAUTHORIZED:
                        await self._access.renew()
                    raise Refused(Answer(response.status, _parsed(await response.read())))
                rest = b""
                async for chunk in response.content.iter_any():
                    *whole, rest = (rest + chunk).split(b"\n")
                    if whole:
                        yield whole
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"GET {path}: {type(error).__name__}: {error}") from error


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {"message": data[:500].decode(errors="replace")}
    return found if isinstance(found, dict) else {"message": str(found)[:500]}


def _seconds(header: bytes | None) -> float:
    return float(header) if header and header.isdigit() else 0.0
