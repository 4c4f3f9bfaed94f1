"""Asking a server for one answer over HTTP: bounded in time, in size, and in how many are asked at once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLContext, SSLError
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import aiohttp

from inference_autoscaler.sources.answers import SourceFailed

LARGEST_ANSWER = 8 << 20
"""Bytes: as much as the metrics of a server with some ten thousand series."""
AT_ONCE, AT_ONE_SERVER = 64, 4
"""Requests under way: of all, and at one server, so that one which is stuck holds nobody else up."""
PATIENCE_SECONDS = 15.0
"""So long a question waits for its turn at a server: what was known before is too old then."""


class Refused(SourceFailed):
    """The server does not let us in: credentials are to be read again."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. With a ``form`` it is posted; ``tls`` is None for the usual authorities."""

    url: str
    parameters: tuple[tuple[str, str], ...] = ()
    form: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: SSLContext | None = None


class Fetcher:
    """One pool of connections for all sources. Open it with ``async with``."""

    def __init__(self, seconds: float) -> None:
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._session: aiohttp.ClientSession | None = None
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._servers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __aenter__(self) -> "Fetcher":
        # The time for an answer would go by while a connection is waited for: turns are taken before.
        connector = aiohttp.TCPConnector(limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, request: Request) -> bytes:
        """The content of the answer. Raises SourceFailed, Refused, whose texts have nothing of the request but the server."""
        place = server_of(request.url)
        turn = self._servers.setdefault(place, asyncio.Semaphore(AT_ONE_SERVER))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await turn.acquire()
        except TimeoutError:
            raise SourceFailed(
                f"{place} is asked more than it answers: no turn within {PATIENCE_SECONDS:g} s"
            ) from None
        try:
            async with self._limit:
                return await self._ask(request, place)
        finally:
            turn.release()

    async def _ask(self, request: Request, place: str) -> bytes:
        assert self._session is not None, "it is opened before it is asked"
        method = "POST" if request.form else "GET"
        # A server that redirects could send our credentials, and us, wherever it likes.
        try:
            async with self._session.request(
                method,
                request.url,
                params=list(request.parameters),
                data=list(request.form) or None,
                headers=dict(request.headers),
                allow_redirects=False,
                ssl=True if request.tls is None else request.tls,
            ) as answer:
                content = await _bounded(answer, place)
                if answer.status in (401, 403):
                    raise Refused(f"{place} does not let us in: it answers {answer.status}")
                if answer.status >= 300 and not _explains(answer):
                    raise SourceFailed(f"{place} answers {answer.status}")
                return content
        except TimeoutError:
            raise SourceFailed(f"{place} gives no answer within {self._timeout.total:g} s") from None
        except aiohttp.InvalidURL:
            raise SourceFailed(f"{place} is no address") from None
        except (aiohttp.ClientError, SSLError, OSError, ValueError) as error:
            raise SourceFailed(f"{place} cannot be asked: {_cause(error)}") from None


def _explains(answer: aiohttp.ClientResponse) -> bool:
    """Whether it is a Prometheus that says in the content why it refuses a query."""
    return answer.status in (400, 422, 503) and answer.content_type == "application/json"


async def _bounded(answer: aiohttp.ClientResponse, place: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_chunked(1 << 16):
        size += len(part)
        if size > LARGEST_ANSWER:
            answer.close()
            raise SourceFailed(f"{place} answers more than {LARGEST_ANSWER >> 20} MiB")
        parts.append(part)
        await asyncio.sleep(0)
    return b"".join(parts)


def server_of(url: str) -> str:
    """The server of ``url``, without what may be secret of it: user, password and query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the address"
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else "the address"


def _cause(error: Exception) -> str:
    """In a few words, without the request."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(error.os_error.strerror or type(error.os_error).__name__)
    return type(error).__name__
