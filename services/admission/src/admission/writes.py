"""What users wrote, and who: read from the facts, which name the author of every change."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from admission.authors import is_part
from admission.happening import Happening
from kube import Key
from tidegate.codec.blobs import BlobReader
from tidegate.fact.v1 import fact_pb2

KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Written:
    """One change of a change set: of one object, or of several. What is to be told of each is made when somebody asks."""

    at_ms: int
    user: str
    done: str
    kind: str
    namespace: str
    names: Sequence[str]
    revision: int

    def happenings(self) -> Iterator[Happening]:
        """One for each object, the last one first."""
        for name in reversed(self.names):
            key = Key(self.kind, self.namespace, name)
            text = f"{self.user} {self.done} {self.kind.partition('.')[0]} {name}"
            reason = f"Object{self.done.capitalize()}"
            yield Happening(self.at_ms, self.user, reason, "Written", text, key, True, self.revision)


class Writes:
    """The newest writes of users; what services, nodes and the cluster itself change is none."""

    def __init__(self) -> None:
        self._kept: deque[Written] = deque()
        self._count = 0

    def note(self, message: fact_pb2.ChangeSet, revision: int) -> None:
        """Take in one change set."""
        blobs = BlobReader(message.blobs)
        for change in message.changes:
            user = message.actors[change.actor] if change.actor < len(message.actors) else ""
            if is_part(user):
                continue
            names = tuple(change.names or (change.name,))
            kind, done = message.kinds[change.kind], _done(change, blobs)
            self._kept.append(Written(message.at_ms, user, done, kind, change.namespace, names, revision))
            self._count += len(names)
            while self._count - len(self._kept[0].names) >= KEPT:
                self._count -= len(self._kept.popleft().names)

    def newest(
        self, namespace: str, about: Key | None, limit: int, sees: Callable[[Key], bool] = lambda _: True
    ) -> list[Happening]:
        """The newest writes, oldest first: all, of a namespace, or to one object; of those that one ``sees``."""

        def meant() -> Iterator[Happening]:
            told = chain.from_iterable(written.happenings() for written in reversed(self._kept))
            for one in islice(told, KEPT):
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
