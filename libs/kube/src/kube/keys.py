"""The identity of an object: its kind with group, its namespace, its name."""

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


def kind_id(api_version: str, kind: str) -> str:
    """``("batch.volcano.sh/v1alpha1", "Job")`` → ``"Job.batch.volcano.sh"``; ``("v1", "Pod")`` → ``"Pod"``."""
    group, slash, _ = api_version.rpartition("/")
    return f"{kind}.{group}" if slash else kind
