"""Snapshots of the whole system between memory and files: a line that says what it is, then the message, compressed."""

import gzip

from google.protobuf.message import DecodeError

from tidegate.snapshot.v1 import snapshot_pb2

FORMAT = 1
"""Of the message; a reader takes its own format and none that is newer."""

_MAGIC = b"tidegate snapshot\n"
_LEVEL = 3


class NoSnapshot(ValueError):
    """These bytes are no snapshot that this version can read; the text says why."""


def pack(snapshot: snapshot_pb2.SystemSnapshot) -> bytes:
    """The content of a file; equal snapshots give equal bytes."""
    return _MAGIC + gzip.compress(snapshot.SerializeToString(deterministic=True), _LEVEL, mtime=0)


def unpack(content: bytes) -> snapshot_pb2.SystemSnapshot:
    """What ``pack`` packed; raises NoSnapshot."""
    if not content.startswith(_MAGIC):
        raise NoSnapshot("this is no snapshot: `tidegate snapshot -o FILE` writes one")
    try:
        snapshot = snapshot_pb2.SystemSnapshot.FromString(gzip.decompress(content[len(_MAGIC) :]))
    except (DecodeError, EOFError, OSError) as error:
        raise NoSnapshot(f"the snapshot is damaged or cut off: {error}") from None
    if snapshot.format > FORMAT:
        raise NoSnapshot(f"the snapshot has format {snapshot.format}, this version reads {FORMAT}: use a newer one")
    return snapshot
