"""Getting the objects that a user means: by name, or all of a kind that a selector picks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kube import Manifest
from tidegate_cli.object_words import Wanted

if TYPE_CHECKING:
    from tidegate.client import SyncClient


@dataclass(frozen=True, slots=True)
class Selection:
    """Where to look, and what to take. ``namespace`` is empty for all."""

    namespace: str
    labels: str = ""
    fields: str = ""


@dataclass(slots=True)
class Gathered:
    """What was found, and a sentence for each name that was not."""

    manifests: list[Manifest] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def gather(client: "SyncClient", wanted: Sequence[Wanted], selection: Selection) -> Gathered:
    """The objects that are wanted, kind by kind."""
    from tidegate.client import NotFound

    gathered = Gathered()
    for one in wanted:
        if not one.names:
            gathered.manifests += _listed(client, one, selection)
        for key in one.keys(selection.namespace):
            try:
                gathered.manifests.append(client.get(key.kind, key.name, key.namespace))
            except NotFound as error:
                gathered.missing.append(str(error))
    return gathered


def _listed(client: "SyncClient", wanted: Wanted, selection: Selection) -> list[Manifest]:
    return client.list(
        wanted.kind.id,
        wanted.place(selection.namespace),
        label_selector=selection.labels,
        field_selector=selection.fields,
    )
