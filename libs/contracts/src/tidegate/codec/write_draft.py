"""The request to the cluster gateway that is being gathered: parts that objects share are sent once."""

from kube import Key, Object
from tidegate.codec.blobs import BlobWriter
from tidegate.gateway.v1 import gateway_pb2


class WriteDraft:
    """Writes in their order; the gateway does all of them or none."""

    def __init__(self) -> None:
        self.request = gateway_pb2.WriteRequest()
        self.objects = 0
        self._blobs = BlobWriter(self.request.blobs)
        self._alike: tuple[object, ...] = ()
        self._write = gateway_pb2.Write()

    def store(self, item: Object, expected_revision: int | None) -> int:
        """Store ``item`` if the stored version is still the one of that revision (0: there is none; None: whatever is there).

        Returns its place among the objects that are written.
        """
        self.objects += 1
        kind, namespace, name = item.key
        put = self._blobs.put
        parts = put(item.metadata), put(item.body), put(item.status or None)
        alike = (kind, namespace, parts, expected_revision)
        if alike == self._alike:
            self._also(name)
            return self.objects - 1
        self._alike = alike
        self._write = self.request.writes.add(
            kind=kind,
            namespace=namespace,
            name=name,
            metadata=parts[0],
            body=parts[1],
            status=parts[2],
            expected_revision=expected_revision or 0,
            force=expected_revision is None,
        )
        return self.objects - 1

    def _also(self, name: str) -> None:
        """One more object like the last one."""
        write = self._write
        if write.name:
            write.names.append(write.name)
            write.name = ""
        write.names.append(name)

    def delete(self, key: Key, uid: str, grace_seconds: int | None) -> None:
        """Delete the object of ``uid`` if it is there under ``key``; whatever is there if it has none yet."""
        self.objects += 1
        self._alike = ()
        self.request.writes.add(
            delete=True,
            kind=key.kind,
            namespace=key.namespace,
            name=key.name,
            uid=uid,
            force=True,
            grace_seconds=grace_seconds,
        )
