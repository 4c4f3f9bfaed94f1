"""The bus on a NATS server with JetStream."""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription
from nats.errors import ConnectionReconnectingError, NoRespondersError
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, ObjectStoreConfig
from nats.js.errors import BucketNotFoundError, NotFoundError
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

from bus.jetstream_lease import JetStreamLease
from bus.jetstream_log import JetStreamLog, ensure_replicas, ensure_stream, until_made
from bus.jetstream_reader import StreamReader
from bus.login import login
from bus.patience import Reconnecting, patiently
from bus.ports import Handler, NoResponder, Parked, Ping, RequestFailed
from bus.topology import DEAD, DEAD_MESSAGES, LAST_VALUES, LEASES, SNAPSHOTS, VALUES, StreamSpec

_log = logging.getLogger(__name__)

FAILED = "Tidegate-Error"


class HonestClient(Client):
    """A client whose requests can be cancelled at any moment, and that tells no password to a server that it cannot trust.

    In Python before 3.12 a ``wait_for`` whose result comes in the same moment takes the cancellation for its own: the
    task would go on as if nothing had been said. The base class goes on without TLS where a server says that it has none.
    """

    def __init__(self, authority: Path | None = None) -> None:
        super().__init__()
        self._authority = authority

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """Asked for at every connect: authorities are renewed."""
        return ssl.create_default_context(cafile=self._authority)

    def _connect_command(self) -> bytes:
        server = self._current_server
        demanded = self._authority is not None or (server is not None and server.uri.scheme == "tls")
        if demanded and not self._server_info.get("tls_required"):
            raise NatsError("nats: the server offers no TLS")
        return super()._connect_command()

    async def request(self, *arguments: Any, **options: Any) -> Msg:
        answer = await super().request(*arguments, **options)
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return answer


class JetStreamBus:
    """A connection to a NATS server. It reconnects for ever; while it is away, requests fail and appends wait.

    Streams and buckets are made by whoever writes to them first, on ``replicas`` servers; to readers what is not there is empty.
    """

    def __init__(self, client: Client, replicas: int = 1) -> None:
        self._client, self._replicas = client, replicas
        self._js: JetStreamContext = client.jetstream(timeout=5)
        self._logs: dict[str, JetStreamLog] = {}
        self._readers: set[Reconnecting] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._snapshot_store: ObjectStore | None = None
        self._declared: set[str] = set()

    @classmethod
    async def connect(
        cls,
        url: str,
        name: str,
        *,
        token: str | None = None,
        credentials: Path | None = None,
        authority: Path | None = None,
        replicas: int = 1,
    ) -> "JetStreamBus":
        """Connect as ``name``, with a token or what is in the folder ``credentials``, to one of the servers that ``url`` lists (with
        commas); waits for one that is not there yet. With ``authority`` only to one for which a certificate of that file vouches.

        Answers come to subjects below ``_INBOX.<name>``, so that a server can keep them from everybody else.
        """
        bus: JetStreamBus | None = None

        async def reconnected() -> None:
            if bus is not None:
                bus._reconnected()

        async def quiet(error: Exception) -> None:
            """Errors of the connection show as its state; the default would print a stack trace for each try.

            Why a bus is not trusted is told, once: that does not pass by itself.
            """
            passing = isinstance(error, ConnectionError | TimeoutError) or (authority is None and "tls://" not in url)
            if not passing and str(error) not in told:
                told.add(str(error))
                _log.warning("bus_not_trusted", extra={"error": str(error)})

        told: set[str] = set()
        client = HonestClient(authority)
        await client.connect(
            url.split(","),
            name=name,
            inbox_prefix=f"_INBOX.{name}",
            **login(token, credentials),
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,  # type: ignore[arg-type]  # declared as a whole number, used in a sleep
            ping_interval=20,
            allow_reconnect=True,
            reconnected_cb=reconnected,
            error_cb=quiet,
        )
        bus = cls(client, replicas)
        return bus

    def _reconnected(self) -> None:
        """What the server knew of readers may be gone, and the answers to what was asked before will not come."""
        for reader in list(self._readers):
            reader.reconnected()
        for waiting in list(self._client._resp_map.values()):
            if not waiting.done():
                waiting.set_exception(ConnectionReconnectingError())

    def log(self, name: str) -> JetStreamLog:
        if name not in self._logs:
            self._logs[name] = JetStreamLog(
                self._client, self._js, name, self._snapshots, self._readers, self._replicas
            )
        return self._logs[name]

    async def _snapshots(self, *, make: bool) -> ObjectStore | None:
        """The store of snapshots. Where there is none yet it is made, or None is returned."""
        try:
            if self._snapshot_store is None:
                self._snapshot_store = await self._js.object_store(SNAPSHOTS)
            if make:
                await ensure_replicas(self._js, f"OBJ_{SNAPSHOTS}", self._replicas)
        except NotFoundError:
            if not make:
                return None
            config = ObjectStoreConfig(bucket=SNAPSHOTS, replicas=self._replicas)
            self._snapshot_store = await self._js.create_object_store(SNAPSHOTS, config)
        return self._snapshot_store

    async def request(self, subject: str, payload: bytes, *, timeout: float = 5.0) -> bytes:
        try:
            answer = await self._client.request(subject, payload, timeout=timeout)
        except NoRespondersError:
            raise NoResponder(f"nobody answers on {subject}") from None
        except ConnectionReconnectingError:
            raise RequestFailed(f"no answer on {subject}: the connection to the bus was lost meanwhile") from None
        except (TimeoutError, NatsError):
            raise RequestFailed(f"no answer on {subject} within {timeout:g} s") from None
        if answer.headers and FAILED in answer.headers:
            raise RequestFailed(f"{subject}: {answer.headers[FAILED]}")
        return answer.data

    async def serve(self, subject: str, handler: Handler) -> "_Serving":
        async def answer(message: Msg) -> None:
            try:
                await message.respond(await handler(message.data))
            except NatsError:
                pass
            except Exception as error:
                text = f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
                with suppress(NatsError):
                    await self._client.publish(message.reply, b"", headers={FAILED: text})

        async def take(message: Msg) -> None:
            task = asyncio.create_task(answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return _Serving(await self._client.subscribe(subject, cb=take))

    async def _declare(self, spec: StreamSpec) -> None:
        if spec.name not in self._declared:
            await ensure_stream(self._js, replace(spec, replicas=self._replicas).config())
            self._declared.add(spec.name)

    async def set_value(self, subject: str, payload: bytes) -> None:
        await self._declare(LAST_VALUES)
        if not payload:
            await patiently(lambda: self._js.purge_stream(VALUES, subject=subject))
            return
        while True:
            try:
                await self._js.publish(subject, payload, timeout=5.0)
                return
            except (TimeoutError, NatsError):
                await asyncio.sleep(0.1)

    async def values(self, subject: str) -> AsyncIterator[bytes]:
        await until_made(self._js, VALUES)
        reader = StreamReader(self._client, self._js, VALUES, subject, 0, filtered=True)
        self._readers.add(reader)
        try:
            while True:
                yield (await reader.batch())[-1].payload
        finally:
            self._readers.discard(reader)
            await reader.stop()

    async def publish(self, subject: str, payload: bytes) -> None:
        with suppress(NatsError):
            await self._client.publish(subject, payload)

    async def listen(self, subject: str, handler: Callable[[bytes], None]) -> "_Serving":
        async def take(message: Msg) -> None:
            handler(message.data)

        return _Serving(await self._client.subscribe(subject, cb=take))

    async def lease(self, name: str, holder: str, ttl_seconds: float = 5.0) -> JetStreamLease:
        return JetStreamLease(self._js, await self._lease_bucket(), name, holder, ttl_seconds)

    async def _lease_bucket(self) -> KeyValue:
        while True:
            try:
                bucket = await self._js.key_value(LEASES)
                await ensure_replicas(self._js, f"KV_{LEASES}", self._replicas)
                return bucket
            except BucketNotFoundError:
                with suppress(NatsError):
                    config = KeyValueConfig(bucket=LEASES, history=1, limit_marker_ttl=60, replicas=self._replicas)
                    return await self._js.create_key_value(config)
            except (TimeoutError, NatsError):
                await asyncio.sleep(0.1)

    async def park(self, parked: Parked) -> None:
        await self._declare(DEAD_MESSAGES)
        record = {"at": parked.at_ms, "service": parked.service, "source": parked.source, "error": parked.error}
        head = orjson.dumps(record)
        payload = len(head).to_bytes(4) + head + parked.payload
        await patiently(lambda: self._js.publish(f"tidegate.dead.{parked.service}", payload, timeout=5.0))

    async def parked(self, limit: int = 100) -> list[Parked]:
        try:
            state = (await self._js.stream_info(DEAD)).state
        except NotFoundError:
            return []
        found: list[Parked] = []
        for sequence in range(max(1, state.first_seq, state.last_seq - limit + 1), state.last_seq + 1):
            with suppress(NotFoundError):
                found.append(_unpack((await self._js.get_msg(DEAD, sequence)).data or b""))
        return [item for item in found if item.service]

    def ping(self) -> Ping:
        return Ping(
            self._client.is_connected, str(self._client.connected_url.netloc if self._client.connected_url else "")
        )

    async def close(self) -> None:
        with suppress(NatsError, OSError):
            await self._client.close()


def _unpack(content: bytes) -> Parked:
    if len(content) < 4:
        return Parked(int(time.time() * 1000), "", "", "", content)
    size = int.from_bytes(content[:4])
    record = orjson.loads(content[4 : 4 + size])
    return Parked(record["at"], record["service"], record["source"], record["error"], content[4 + size :])


class _Serving:
    def __init__(self, subscription: NatsSubscription) -> None:
        self._subscription = subscription

    async def stop(self) -> None:
        with suppress(NatsError):
            await self._subscription.unsubscribe()
