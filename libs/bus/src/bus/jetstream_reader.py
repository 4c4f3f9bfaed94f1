"""Reading a stream from a sequence on, whatever happens to the server meanwhile."""

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from bus.ports import Entry, LogLost

HEARTBEAT_SECONDS = 5.0
PART = "Tidegate-Part"


class StreamReader:
    """A consumer of its own for one reader; made again from the last sequence seen whenever something was lost.

    Deliveries wait in memory until they are taken; the server's flow control is answered only once they were, so a slow
    reader slows the delivery and not the memory.
    """

    def __init__(
        self, client: Client, js: JetStreamContext, stream: str, subject: str, after: int, *, filtered: bool = False
    ) -> None:
        self._client, self._js, self._stream, self._subject = client, js, stream, subject
        self._filter = subject if filtered else None
        self._position = after
        self._inbox: deque[Entry] = deque()
        self._parts: list[Entry] = []
        self._back = 0
        """So many messages before the position the delivery begins: the position is in the midst of an entry."""
        self._wake = asyncio.Event()
        self._subscription: Subscription | None = None
        self._expected = 1
        self._lost = True
        self._flow_reply = ""
        self._consumer = ""
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None

    async def batch(self) -> list[Entry]:
        """What has come since the last call; waits for one entry at least."""
        while not self._inbox:
            if self._lost:
                await self._subscribe()
            await self._answer_flow_control()
            if self._inbox or self._lost:
                continue
            self._wake.clear()
            await self._wake.wait()
        entries = list(self._inbox)
        self._inbox.clear()
        return entries

    def reconnected(self) -> None:
        """The connection was away: what the server knew of this reader may be gone."""
        self._lost = True
        self._wake.set()

    async def stop(self) -> None:
        """End the delivery."""
        if self._watch is not None:
            self._watch.cancel()
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            with suppress(NatsError):
                await subscription.unsubscribe()
            with suppress(NatsError, asyncio.TimeoutError):
                await self._js.delete_consumer(self._stream, self._consumer)

    def _look(self) -> None:
        """Now and then: a server that has not been heard for so long has lost the delivery."""
        loop = asyncio.get_running_loop()
        if self._heard_at + 2 * HEARTBEAT_SECONDS < loop.time():
            self._lost = True
            self._wake.set()
        self._watch = loop.call_later(HEARTBEAT_SECONDS, self._look)

    async def _subscribe(self) -> None:
        await self.stop()
        self._expected, self._lost = 1, False
        loop = asyncio.get_running_loop()
        self._heard_at = loop.time()
        self._watch = loop.call_later(HEARTBEAT_SECONDS, self._look)
        self._parts.clear()
        if not await self._is_as_read():
            return
        inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(inbox, cb=self._take, pending_bytes_limit=1 << 30)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=max(1, self._position + 1 - self._back),
            ack_policy=AckPolicy.NONE,
            deliver_subject=inbox,
            filter_subject=self._filter,
            idle_heartbeat=HEARTBEAT_SECONDS,
            flow_control=True,
            inactive_threshold=60.0,
            mem_storage=True,
            num_replicas=1,
        )
        try:
            info = await self._js.add_consumer(self._stream, config)
            self._consumer = info.name
        except (TimeoutError, NatsError):
            self._lost = True
            await asyncio.sleep(0.2)

    async def _is_as_read(self) -> bool:
        """Whether the stream can be read on. Raises LogLost where what was read of it is not there any more: what comes next
        would have sequences that were seen already, and be passed over.
        """
        last = 0
        try:
            last = (await self._js.stream_info(self._stream)).state.last_seq
        except NotFoundError:
            pass
        except (TimeoutError, NatsError):
            self._lost = True
            await asyncio.sleep(0.2)
            return False
        if last < self._position:
            raise LogLost(self._stream, self._position, last)
        return True

    async def _take(self, message: Msg) -> None:
        headers = message.headers
        self._heard_at = asyncio.get_running_loop().time()
        if headers and headers.get("Status") == "100":
            await self._take_control(message.reply, headers)
            return
        # $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>
        tokens = message.reply.split(".")
        sequence, number, nanoseconds = int(tokens[-4]), int(tokens[-3]), int(tokens[-2])
        if number != self._expected:
            self._lost = True
            self._wake.set()
            return
        self._expected += 1
        self._accept(Entry(sequence, message.data, headers or {}, nanoseconds // 1_000_000))

    async def _take_control(self, reply: str, headers: Mapping[str, str]) -> None:
        """The server asks whether it may go on sending, or says that it lives and what it sent last."""
        if reply:
            self._flow_reply = reply
            if not self._inbox:
                await self._answer_flow_control()
            return
        if stalled := headers.get("Nats-Consumer-Stalled"):
            self._flow_reply = stalled
            self._wake.set()
        if int(headers.get("Nats-Last-Consumer") or 0) >= self._expected:
            self._lost = True
            self._wake.set()

    def _accept(self, entry: Entry) -> None:
        part = entry.headers.get(PART, "")
        if part:
            index, _, count = part.partition("/")
            if index == "1":
                self._parts.clear()
            if int(index) != len(self._parts) + 1:
                if not self._back:
                    # Reading begins in the midst of it: it is read from its beginning, and nothing behind it before.
                    self._back, self._lost, self._expected = int(index) - 1, True, -1
                    self._wake.set()
                # Else the log was trimmed in the middle of it: what is left is no message.
                self._parts.clear()
                return
            self._parts.append(entry)
            if index != count:
                return
            entry = entry._replace(payload=b"".join(piece.payload for piece in self._parts))
            self._parts.clear()
        if entry.sequence <= self._position:
            return
        self._position, self._back = entry.sequence, 0
        self._inbox.append(entry)
        self._wake.set()

    async def _answer_flow_control(self) -> None:
        if self._flow_reply:
            reply, self._flow_reply = self._flow_reply, ""
            with suppress(NatsError):
                await self._client.publish(reply)
