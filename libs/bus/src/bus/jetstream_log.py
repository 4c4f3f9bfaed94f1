"""A log as a JetStream stream with one subject, guarded by its last sequence."""

import asyncio
import io
import logging
import uuid
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ObjectMeta, ObjectMetaOptions, StreamConfig, StreamInfo
from nats.js.errors import (
    APIError,
    NoStreamResponseError,
    NotFoundError,
    ObjectNotFoundError,
    ServiceUnavailableError,
)
from nats.js.object_store import ObjectStore

from bus.jetstream_reader import PART, StreamReader
from bus.patience import PAUSE_SECONDS, Interruptible, Reconnecting, patiently
from bus.ports import BusError, Entry, StaleWriter
from bus.topology import MAX_PART_BYTES, stream_of_log

log = logging.getLogger(__name__)

MESSAGE_ID = "Nats-Msg-Id"
EXPECTED = "Nats-Expected-Last-Sequence"
SNAPSHOTS_KEPT = 5
SNAPSHOT_CHUNK_BYTES = 1 << 20
_STALE_CODES = {10071, 10164}
_IN_USE = 10058
_LOST_BATCH = 10176
"""The server was started again between the parts of a message: none of it was stored."""


class Snapshots(Protocol):
    """Gives the store of snapshots; where there is none yet it is made, or there is None."""

    async def __call__(self, *, make: bool) -> ObjectStore | None: ...


class JetStreamLog:
    """One log. Its stream is made by who writes to it; to others it is empty until then.

    ``readers`` is told of every reader while it lives, so that a reconnect can wake it.
    """

    def __init__(
        self,
        client: Client,
        js: JetStreamContext,
        name: str,
        snapshots: Snapshots,
        readers: set[Reconnecting],
        replicas: int = 1,
    ) -> None:
        self.name = name
        self._client, self._js, self._readers = client, js, readers
        self._spec = replace(stream_of_log(name), replicas=replicas)
        self._subject = self._spec.subjects[0]
        self._snapshots = snapshots
        self._declared = False

    async def declare(self) -> None:
        """Make the stream if it is not there."""
        if self._declared:
            return
        await ensure_stream(self._js, self._spec.config())
        self._declared = True

    async def append(
        self,
        payload: bytes,
        *,
        expected: int,
        message_id: str,
        headers: Mapping[str, str] | None = None,
        topic: str = "",
    ) -> int:
        await self.declare()
        subject = f"{self._subject}.topic.{topic}" if topic else self._subject
        base = {**(headers or {}), "Tidegate-Id": message_id}
        while True:
            try:
                if len(payload) > MAX_PART_BYTES:
                    return await self._append_parts(subject, payload, expected, base)
                guarded = {**base, EXPECTED: str(expected), MESSAGE_ID: message_id}
                ack = await self._js.publish(subject, payload, timeout=5.0, headers=guarded)
                return ack.seq
            except APIError as error:
                if error.err_code in _STALE_CODES:
                    return await self._stale(expected, message_id)
                if error.err_code != _LOST_BATCH and not isinstance(error, ServiceUnavailableError):
                    raise BusError(f"log {self.name}: {error.description}") from error
                await asyncio.sleep(0.1)
            except NoStreamResponseError:
                # The server is starting, or has lost the stream: then it is made anew, and the guard refuses the writer.
                self._declared = False
                await asyncio.sleep(0.1)
                await self.declare()
            except (TimeoutError, NatsError):
                # Unknown whether it was stored: the same message with the same id and guard cannot be stored twice.
                await asyncio.sleep(0.1)

    async def _stale(self, expected: int, message_id: str) -> int:
        """The guard refused: either an earlier try of ours was stored after all, or somebody else wrote."""
        last = await self.last()
        if last > expected:
            newest = await patiently(lambda: self._js.get_msg(self._spec.name, last))
            if (newest.headers or {}).get("Tidegate-Id") == message_id:
                return last
        raise StaleWriter(self.name, expected, last)

    async def _append_parts(self, subject: str, payload: bytes, expected: int, base: Mapping[str, str]) -> int:
        pieces = [payload[start : start + MAX_PART_BYTES] for start in range(0, len(payload), MAX_PART_BYTES)]
        batch = uuid.uuid4().hex
        for index, piece in enumerate(pieces, 1):
            headers = {
                **base,
                PART: f"{index}/{len(pieces)}",
                "Nats-Batch-Id": batch,
                "Nats-Batch-Sequence": str(index),
            }
            if index == 1:
                headers[EXPECTED] = str(expected)
            if index < len(pieces):
                await self._client.publish(subject, piece, headers=headers)
                continue
            headers["Nats-Batch-Commit"] = "1"
            ack = await self._js.publish(subject, piece, timeout=5.0, headers=headers)
            return ack.seq
        raise BusError(f"log {self.name}: an empty batch")

    async def last(self) -> int:
        found = await self._info()
        return found.state.last_seq if found is not None else 0

    async def first(self) -> int:
        found = await self._info()
        return max(1, found.state.first_seq) if found is not None else 1

    async def _info(self) -> StreamInfo | None:
        try:
            return await patiently(lambda: self._js.stream_info(self._spec.name))
        except NotFoundError:
            return None

    async def last_of(self, topic: str) -> Entry | None:
        try:
            subject = f"{self._subject}.topic.{topic}"
            message = await patiently(lambda: self._js.get_last_msg(self._spec.name, subject))
        except NotFoundError:
            return None
        headers, sequence = message.headers or {}, message.seq or 0
        _, _, count = headers.get(PART, "").partition("/")
        pieces = [await self._piece(number) for number in range(sequence - int(count or 1) + 1, sequence)]
        return Entry(sequence, b"".join([*pieces, message.data or b""]), headers)

    async def _piece(self, sequence: int) -> bytes:
        """One of the messages of an entry: its parts follow one another."""
        return (await patiently(lambda: self._js.get_msg(self._spec.name, sequence))).data or b""

    async def read(self, after: int) -> AsyncGenerator[list[Entry], None]:
        await until_made(self._js, self._spec.name)
        reader = StreamReader(self._client, self._js, self._spec.name, self._subject, after)
        self._readers.add(reader)
        try:
            while True:
                yield await reader.batch()
        finally:
            self._readers.discard(reader)
            await reader.stop()

    async def put_snapshot(self, sequence: int, content: bytes) -> None:
        await patiently(lambda: self._put_snapshot(sequence, content))

    async def _put_snapshot(self, sequence: int, content: bytes) -> None:
        store = await self._snapshots(make=True)
        assert store is not None, "it was made"
        meta = ObjectMeta(options=ObjectMetaOptions(max_chunk_size=SNAPSHOT_CHUNK_BYTES))
        # Beside the event loop: it takes a tenth of a second for ten megabytes.
        packed = await asyncio.to_thread(zlib.compress, content, 1)
        await store.put(self._snapshot_name(sequence), packed, meta)
        for old in (await self._snapshot_sequences(store))[:-SNAPSHOTS_KEPT]:
            with suppress(NotFoundError):
                await store.delete(self._snapshot_name(old))

    async def snapshot(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        return await patiently(lambda: self._read_snapshot(at_most))

    async def _read_snapshot(self, at_most: int | None) -> tuple[int, bytes] | None:
        reading = Interruptible(self._snapshot(at_most))
        self._readers.add(reading)
        try:
            return await reading.result()
        finally:
            self._readers.discard(reading)

    async def _snapshot(self, at_most: int | None) -> tuple[int, bytes] | None:
        store = await self._snapshots(make=False)
        if store is None:
            return None
        for sequence in reversed(await self._snapshot_sequences(store)):
            if at_most is None or sequence <= at_most:
                with suppress(ObjectNotFoundError):
                    # Written chunk by chunk: what the client gathers by itself costs the square of the size.
                    content = io.BytesIO()
                    await store.get(self._snapshot_name(sequence), writeinto=content)
                    return sequence, zlib.decompress(content.getvalue())
        return None

    async def trim(self, before: int) -> None:
        if before <= 1:  # nothing is older than the first; and a purge up to 0 would be one of everything
            return
        await patiently(lambda: self._js.purge_stream(self._spec.name, seq=before))

    def _snapshot_name(self, sequence: int) -> str:
        return f"{self.name}.{sequence}"

    async def _snapshot_sequences(self, store: ObjectStore) -> list[int]:
        try:
            found = await store.list()
        except NotFoundError:
            return []
        prefix = f"{self.name}."
        names = [item.name for item in found if item.name and item.name.startswith(prefix) and not item.deleted]
        return sorted(int(name[len(prefix) :]) for name in names)


async def ensure_replicas(js: JetStreamContext, stream: str, replicas: int) -> None:
    """A stream that is there is kept on ``replicas`` servers. Raises NatsError."""
    there = (await js.stream_info(stream)).config
    if there.num_replicas != replicas:
        await js.update_stream(there, num_replicas=replicas)


async def ensure_stream(js: JetStreamContext, config: StreamConfig) -> None:
    """Make the stream of ``config``; one that is there gets the number of replicas that it says."""
    while True:
        try:
            await ensure_replicas(js, str(config.name), config.num_replicas or 1)
            return
        except NotFoundError:
            if await _made(js, config):
                continue
        except APIError as error:
            log.warning("stream_not_changed", extra={"stream": config.name, "detail": error.description})
        except (TimeoutError, NatsError):
            pass
        await asyncio.sleep(0.1)


async def _made(js: JetStreamContext, config: StreamConfig) -> bool:
    try:
        await js.add_stream(config)
    except ServiceUnavailableError:
        return False
    except APIError as error:
        if error.err_code != _IN_USE:  # else somebody has made it in the same moment
            log.warning("stream_not_made", extra={"stream": config.name, "detail": error.description})
            return False
    except (TimeoutError, NatsError):
        return False
    return True


async def until_made(js: JetStreamContext, stream: str) -> None:
    """Return once the stream is there."""
    while True:
        try:
            await patiently(lambda: js.stream_info(stream))
            return
        except NotFoundError:
            await asyncio.sleep(PAUSE_SECONDS)
