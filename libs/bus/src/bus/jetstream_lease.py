"""A lease in a key-value bucket: a key that its holder renews and that expires when it does not."""

import asyncio
from contextlib import suppress

from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.errors import APIError, KeyNotFoundError
from nats.js.kv import KeyValue

from bus.topology import LEASES


class JetStreamLease:
    """One process's claim to a lease. A renewal is a raw publish: an update through the bucket would drop the expiry."""

    def __init__(self, js: JetStreamContext, bucket: KeyValue, name: str, holder: str, ttl_seconds: float) -> None:
        self._js, self._bucket, self._name, self._holder, self._ttl = js, bucket, name, holder, ttl_seconds
        self._revision = 0
        self._lost = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        while not await self._try():
            await asyncio.sleep(self._ttl / 4)
        self._renewing = asyncio.create_task(self._renew(), name=f"lease {self._name}")

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
        try:
            self._revision = await self._bucket.create(self._name, self._holder.encode(), msg_ttl=self._ttl)
            return True
        except (TimeoutError, NatsError):
            return await self._is_mine()

    async def _is_mine(self) -> bool:
        """Whether the lease is held under this name already: by a predecessor that was killed, for instance."""
        with suppress(KeyNotFoundError, NatsError, asyncio.TimeoutError):
            entry = await self._bucket.get(self._name)
            if entry.value == self._holder.encode():
                self._revision = entry.revision or 0
                return True
        return False

    async def _renew(self) -> None:
        missed = 0.0
        while missed < self._ttl:
            await asyncio.sleep(self._ttl / 3)
            try:
                ack = await self._js.publish(
                    f"$KV.{LEASES}.{self._name}",
                    self._holder.encode(),
                    timeout=self._ttl / 3,
                    headers={"Nats-Expected-Last-Subject-Sequence": str(self._revision), "Nats-TTL": f"{self._ttl:g}s"},
                )
                self._revision, missed = ack.seq, 0.0
            except APIError:
                if not await self._try():
                    break
            except (TimeoutError, NatsError):
                # The server is away: nobody else can take the lease either, so go on trying for as long as it lasts.
                missed += self._ttl / 3
        self._lost.set()
