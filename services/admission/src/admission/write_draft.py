"""The request to the cluster gateway that is being gathered: parts that objects share are sent once."""

from kube import Key, Object
from tidegate.codec.blobs import BlobWriter
from tidegate.gateway.v1 import gateway_pb2


class WriteDraft:
    """Writes in their order; the gateway does all of them or none."""

    def __init__(self) -> None:
        self.request = gateway_pb2.WriteRequest()
        self._blobs = BlobWriter(self.request.blobs)

    def store(self, item: Object, expected_revision: int) -> None:
        """Store ``item`` if the stored version is still the one of that revision (0: there is none)."""
        self.request.writes.add(
            kind=item.key.kind,
            namespace=item.key.namespace,
            name=item.key.name,
            metadata=self._blobs.put(item.metadata),
            body=self._blobs.put(item.body),
            status=self._blobs.put(item.status or None),
            expected_revision=expected_revision,
        )

    def delete(self, key: Key, grace_seconds: int | None) -> None:
        """Delete what is there under ``key``."""
        self.request.writes.add(
            delete=True,
            kind=key.kind,
            namespace=key.namespace,
            name=key.name,
            force=True,
            grace_seconds=grace_seconds,
        )
