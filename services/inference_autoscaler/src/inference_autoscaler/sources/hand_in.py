"""What is asked of the cluster gateway: to write samples like any object, so that they are facts, and for credentials."""

import uuid
from collections.abc import Mapping

from bus import Bus, BusError
from inference_autoscaler.sources.answers import SourceFailed
from kube import Key, Manifest, from_manifest
from tidegate import subjects
from tidegate.codec.write_draft import WriteDraft
from tidegate.gateway.v1 import gateway_pb2

SERVICE = "inference_autoscaler"
ANSWER_SECONDS = 5.0


class NotHandedIn(Exception):
    """The sample is not stored, or nobody knows whether it is; the text says why."""


class HandIn:
    """Writes and deletes MetricReadings."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def store(self, reading: Manifest) -> None:
        """Store it in the place of the one before. Raises NotHandedIn."""
        draft = WriteDraft()
        draft.store(from_manifest(reading), None)
        await self._ask(draft)

    async def delete(self, key: Key, uid: str) -> None:
        """Delete it if it is there. Raises NotHandedIn."""
        draft = WriteDraft()
        draft.delete(key, uid, None)
        await self._ask(draft)

    async def _ask(self, draft: WriteDraft) -> None:
        draft.request.id, draft.request.actor = f"{SERVICE}/{uuid.uuid4()}", SERVICE
        try:
            answer = await self._bus.request(
                subjects.SAMPLES, draft.request.SerializeToString(), timeout=ANSWER_SECONDS
            )
        except BusError as error:
            raise NotHandedIn(str(error)) from None
        reply = gateway_pb2.WriteReply.FromString(answer)
        if reply.error:
            raise NotHandedIn(reply.error)


async def named_secret(bus: Bus, whose: Key, name: str) -> Mapping[str, bytes] | None:
    """The values of the Secret ``name`` that the authentication ``whose`` names; None where there is none. Raises SourceFailed."""
    request = gateway_pb2.CredentialRequest(kind=whose.kind, namespace=whose.namespace, name=whose.name, secret=name)
    try:
        answer = await bus.request(subjects.CREDENTIAL, request.SerializeToString(), timeout=ANSWER_SECONDS)
    except BusError:
        raise SourceFailed(f"the Secret {name} cannot be read just now") from None
    reply = gateway_pb2.CredentialReply.FromString(answer)
    return dict(reply.data) if reply.found else None
