"""The identity of an object: its kind with group, its namespace, its name."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

Manifest = dict[str, Any]


class Key(NamedTuple):
    """Names one object. ``kind`` is ``Kind`` for the core group, else ``Kind.group``; ``namespace`` is "" where the kind has none."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        short = self.kind.partition(".")[0]
        return f"{short}/{self.namespace}/{self.name}" if self.namespace else f"{short}/{self.name}"


_key: Callable[[tuple[str, str, str]], Key] = partial(tuple.__new__, Key)


def keys_of(kind: str, namespace: str, names: Iterable[str]) -> list[Key]:
    """The keys of objects of one kind and namespace: ``Key`` for each, in half the time."""
    return list(map(_key, zip(repeat(kind), repeat(namespace), names)))


def kind_id(api_version: str, kind: str) -> str:
    """``("batch.volcano.sh/v1alpha1", "Job")`` → ``"Job.batch.volcano.sh"``; ``("v1", "Pod")`` → ``"Pod"``."""
    group, slash, _ = api_version.rpartition("/")
    return f"{kind}.{group}" if slash else kind
