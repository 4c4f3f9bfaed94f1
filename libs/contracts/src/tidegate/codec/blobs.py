"""JSON parts of a message, each sent once however many objects share it."""

from collections.abc import MutableSequence, Sequence

import orjson

from kube import Manifest


class BlobWriter:
    """Collects parts into ``blobs`` and gives out references, counted from 1. Equal parts share one blob."""

    def __init__(self, blobs: MutableSequence[bytes]) -> None:
        self._blobs = blobs
        self._by_identity: dict[int, tuple[int, Manifest]] = {}
        self._by_content: dict[bytes, int] = {}

    def put(self, part: Manifest | None, *, passing: bool = False) -> int:
        """The reference of ``part``; 0 for None. A part seen before, by identity, is not serialised again.

        A ``passing`` part was made for this call alone and will not come again.
        """
        if part is None:
            return 0
        known = self._by_identity.get(id(part))
        if known is not None:
            return known[0]
        content = orjson.dumps(part)
        reference = self._by_content.get(content)
        if reference is None:
            self._blobs.append(content)
            reference = self._by_content[content] = len(self._by_content) + 1
        if passing:
            return reference
        # The part is kept so that its id cannot be given to another one while this writer lives.
        self._by_identity[id(part)] = (reference, part)
        return reference


class BlobReader:
    """Reads parts by reference; each is parsed at most once, and only when somebody asks for it."""

    def __init__(self, blobs: Sequence[bytes]) -> None:
        self._blobs = blobs
        self._parsed: list[Manifest | None] = [None] * len(blobs)

    def get(self, reference: int) -> Manifest:
        """The part behind ``reference``, shared between all that ask for it; an empty one for 0."""
        if not reference:
            return {}
        part = self._parsed[reference - 1]
        if part is None:
            part = self._parsed[reference - 1] = orjson.loads(self._blobs[reference - 1])
        return part
