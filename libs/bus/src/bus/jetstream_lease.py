"""A lease in a key-value bucket: a key that its holder renews and that expires when it does not."""

import asyncio
from contextlib import suppress

from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.errors import APIError, NotFoundError
from nats.js.kv import KeyValue

from bus.topology import LEASES

_OVER = {"KV-Operation", "Nats-Marker-Reason"}
"""Headers of what stands in the place of a key that was deleted, or that has expired."""


class JetStreamLease:
    """One process's claim to a lease.

    What is written is a raw publish: an update through the bucket would drop the expiry, and to the bucket's client the
    marker that the server leaves of an expired key looks like a key that somebody holds.
    """

    def __init__(self, js: JetStreamContext, bucket: KeyValue, name: str, holder: str, ttl_seconds: float) -> None:
        self._js, self._bucket, self._name, self._holder, self._ttl = js, bucket, name, holder, ttl_seconds
        self._subject = f"$KV.{LEASES}.{name}"
        self._revision = 0
        self._until = 0.0
        """By the loop's time: the server lets the lease expire no earlier, if both clocks run alike."""
        self._watched = (0, 0.0)
        """The revision of another holder, and since when (by the loop's time) it has been the newest."""
        self._lost = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        while not await self._try():
            await asyncio.sleep(self._ttl / 4)
        self._renewing = asyncio.create_task(self._renew(), name=f"lease {self._name}")

    def is_held(self) -> bool:
        return not self._lost.is_set() and asyncio.get_running_loop().time() < self._until

    async def lost(self) -> None:
        await self._lost.wait()

    async def release(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
            with suppress(NatsError, asyncio.TimeoutError):
                # Only while it is still ours: after it expired, somebody else may hold it.
                await self._bucket.delete(self._name, last=self._revision)
        self._lost.set()

    async def _try(self) -> bool:
        """Take the lease if nobody else holds it: it is free, has expired, or is held under this name already (by a
        predecessor that was killed, for instance).
        """
        try:
            before, holder = await self._newest()
            if holder in (b"", self._holder.encode()) or self._is_left(before):
                self._revision = await self._write(before)
                return True
        except (TimeoutError, NatsError):
            pass
        return False

    def _is_left(self, revision: int) -> bool:
        """Whether a holder has not renewed for twice as long as it may: the server's clock, by which keys expire, may have
        been set back meanwhile.
        """
        now = asyncio.get_running_loop().time()
        if revision != self._watched[0]:
            self._watched = (revision, now)
        return now - self._watched[1] > 2 * self._ttl

    async def _newest(self) -> tuple[int, bytes]:
        """The last revision of the key, and who holds it: nobody after a deletion or the marker of an expiry."""
        try:
            message = await self._js.get_last_msg(f"KV_{LEASES}", self._subject)
        except NotFoundError:
            return 0, b""
        over = message.headers and (message.headers.keys() & _OVER)
        return message.seq or 0, b"" if over else message.data or b""

    async def _write(self, expected: int) -> int:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expected), "Nats-TTL": f"{self._ttl:g}s"}
        asked = asyncio.get_running_loop().time()
        publish = self._js.publish(self._subject, self._holder.encode(), timeout=self._ttl / 3, headers=headers)
        written = await publish
        self._until = asked + self._ttl
        return written.seq

    async def _renew(self) -> None:
        missed = 0.0
        while missed < self._ttl:
            await asyncio.sleep(self._ttl / 3)
            try:
                self._revision, missed = await self._write(self._revision), 0.0
            except APIError:
                if not await self._try():
                    break
            except (TimeoutError, NatsError):
                # The server is away: nobody else can take the lease either, so go on trying for as long as it lasts.
                missed += self._ttl / 3
        self._lost.set()
