"""Reading the message by which a user's writes come."""

from cluster_gateway.domain.writing import Parts, Write
from kube import keys_of
from tidegate.codec.blobs import BlobReader
from tidegate.gateway.v1 import gateway_pb2

READING = "MetricReading.tidegate.dev"


def write_of(item: gateway_pb2.Write, blobs: BlobReader) -> Write:
    """What is to be done with one object, or with each of several."""
    grace = item.grace_seconds if item.HasField("grace_seconds") else None
    parts = None if item.delete else Parts(*map(blobs.get, (item.metadata, item.body, item.status)))
    expected = None if item.force else item.expected_revision
    keys = keys_of(item.kind, item.namespace, item.names or (item.name,))
    return Write(keys, parts, expected, grace, item.uid)


def refused_sample(request: gateway_pb2.WriteRequest) -> str:
    """Why ``request`` is none of a service that measures, which may write MetricReadings alone; empty where it is one."""
    others = sorted({item.kind for item in request.writes} - {READING})
    if others or request.HasField("identity"):
        return (
            f"a service that measures writes {READING} alone, in its own name; not {', '.join(others) or 'as a user'}"
        )
    return ""
