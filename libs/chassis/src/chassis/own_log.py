"""The log of a service's own decisions, and the claim of one term to it."""

import uuid
from collections.abc import Mapping
from contextlib import aclosing

from google.protobuf.message import DecodeError

from bus import Log
from chassis.topics import trim
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.decision.v1 import decision_pb2

TRIM_EVERY = 1_000


class OwnLog:
    """``last`` is the sequence that the next commit expects: whoever leads later has written behind it.

    ``history`` is how many commits are kept behind those that were carried out.
    """

    def __init__(self, service: str, log: Log, holder: str, history: int) -> None:
        self.log, self._service, self._history = log, service, history
        self.last = self.epoch = self._count = 0
        # Two processes may have one name: what either of them appends must never pass for the other's.
        self._writer = f"{service}/{holder}/{uuid.uuid4().hex}"

    async def claim(self, facts: Log, now: int) -> int | None:
        """Start the term; what the predecessor had read of ``facts`` when it decided last, if there was one.

        Raises StaleWriter.
        """
        self.last = await self.log.last()
        decided_on = await self._decided_on()
        self.epoch = self.last + 1
        # The first term of all begins at the present: who comes after it need not go back further.
        begun_on = await facts.last() if decided_on is None else decided_on
        head = CommitHead(self._service, self.epoch, begun_on, now, leader_started=True)
        message_id = f"{self._writer}/{self.epoch}/started"
        self.last = await self.log.append(encode_commit(head, ()), expected=self.last, message_id=message_id)
        return decided_on

    async def _decided_on(self) -> int | None:
        """What the newest commit that can be read was decided on; None where there is none."""
        sequence, first = self.last, await self.log.first()
        while sequence >= first:
            async with aclosing(self.log.read(sequence - 1)) as reader:
                (entry, *_) = await anext(reader)
            try:
                return decision_pb2.Commit.FromString(entry.payload).decided_on
            except DecodeError:
                sequence -= 1
        return None

    def next_id(self) -> str:
        """The id of one more decision of this term."""
        self._count += 1
        return f"{self._service}/{self.epoch}/{self._count}"

    async def commit(self, payload: bytes, headers: Mapping[str, str], topic: str) -> None:
        """Store one commit. Raises StaleWriter when somebody else leads."""
        message_id = f"{self._writer}/{self.epoch}/commit/{self.last + 1}"
        self.last = await self.log.append(
            payload, expected=self.last, message_id=message_id, headers=headers, topic=topic
        )

    async def drop_history(self, carried_out: int) -> None:
        """Now and then drop what is older than anybody needs; ``carried_out`` is how far the cluster side has come."""
        if self.last % min(TRIM_EVERY, self._history) == 0:
            await trim(self.log, carried_out - self._history)
