"""Requests to an API server: JSON over kept connections, errors as what they mean, streams as bytes of lines."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

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


def field_manager(service: str) -> str:
    """The name under which what ``service`` decided is written: of the field manager, and of who reports an Event."""
    return "tidegate-" + service.replace("_", "-")


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
        self._connections: Connections | None = None

    async def __aenter__(self) -> "Api":
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def open(self) -> None:
        """Make the pool of connections; none is opened before the first request."""
        context = self._access.ssl_context()
        address = urlsplit(self._access.host)
        port = address.port or (80 if context is None else 443)
        self._connections = Connections(address.hostname or "", port, address.netloc, context)

    async def close(self) -> None:
        """Cut its connections, also those in use."""
        assert self._connections is not None
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
        data = b"" if request.body is None else orjson.dumps(request.body)
        content = [("Content-Type", request.content)] if data else []
        lines = await self._headers(*content, *request.headers)
        try:
            async with asyncio.timeout(SECONDS):
                target = self._target(request.path, request.parameters)
                reply = await self._connections.ask(request.method, target, lines, data)
            return Answer(reply.code, _parsed(reply.body), _seconds(reply.headers.get(b"retry-after")))
        except (TimeoutError, OSError, EOFError) as error:
            raise Unreachable(f"{request.method} {request.path}: {type(error).__name__}: {error}") from error

    async def _headers(self, *more: tuple[str, str]) -> str:
        """The lines that say who we are, and ``more``."""
        credentials = await self._access.headers()
        return "".join(f"{name}: {value}\r\n" for name, value in [*credentials.items(), *more])

    def _target(self, path: str, parameters: Mapping[str, str] | None) -> str:
        path = urlsplit(self._access.host).path + quote(path, safe=_PATH)
        return f"{path}?{urlencode(parameters)}" if parameters else path

    async def lines(
        self, path: str, parameters: Mapping[str, str], silence: float
    ) -> AsyncGenerator[list[bytes], None]:
        """The lines of a stream, as many at a time as have come; little is read ahead of who takes them.

        Ends when the server ends it. Raises Unreachable, also after ``silence`` seconds without a byte; Refused for an error.
        """
        assert self._connections is not None, "it is opened before the first request"
        headers = await self._headers()
        try:
            async with self._connections.stream(self._target(path, parameters), headers, silence) as (code, pieces):
                if code != 200:
                    if code == UNAUTHORIZED:
                        await self._access.renew()
                    raise Refused(Answer(code, _parsed(b"".join([piece async for piece in pieces]))))
                rest = b""
                async for piece in pieces:
                    *whole, rest = (rest + piece).split(b"\n")
                    if whole:
                        yield whole
        except (TimeoutError, OSError, EOFError) as error:
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
