"""What users wrote, and who: read from the facts, which name the author of every change."""

from collections import deque
from collections.abc import Callable, Iterator

from admission.authors import is_part
from admission.happening import Happening
from kube import Key
from tidegate.codec.blobs import BlobReader
from tidegate.fact.v1 import fact_pb2

KEPT = 20_000


class Writes:
    """The newest writes of users; what services, nodes and the cluster itself change is none."""

    def __init__(self) -> None:
        self._kept: deque[Happening] = deque(maxlen=KEPT)

    def note(self, message: fact_pb2.ChangeSet, revision: int) -> None:
        """Take in one change set."""
        blobs = BlobReader(message.blobs)
        for change in message.changes:
            user = message.actors[change.actor] if change.actor < len(message.actors) else ""
            if is_part(user):
                continue
            done = _done(change, blobs)
            for name in change.names or (change.name,):
                key = Key(message.kinds[change.kind], change.namespace, name)
                text = f"{user} {done} {key.kind.partition('.')[0]} {name}"
                self._kept.append(
                    Happening(message.at_ms, user, f"Object{done.capitalize()}", "Written", text, key, True, revision)
                )

    def newest(
        self, namespace: str, about: Key | None, limit: int, sees: Callable[[Key], bool] = lambda _: True
    ) -> list[Happening]:
        """The newest writes, oldest first: all, of a namespace, or to one object; of those that one ``sees``."""

        def meant() -> Iterator[Happening]:
            for one in reversed(self._kept):
                key = one.about
                if (not namespace or key.namespace in ("", namespace)) and about in (None, key) and sees(key):
                    yield one

        return [one for one, _ in zip(meant(), range(limit), strict=False)][::-1]


def _done(change: fact_pb2.Change, blobs: BlobReader) -> str:
    """In a word; an object that gets its time to end is deleted from then on."""
    if change.fresh:
        return "created"
    ending = change.removed or (change.metadata and "deletionTimestamp" in (blobs.get(change.metadata) or {}))
    return "deleted" if ending else "changed"
