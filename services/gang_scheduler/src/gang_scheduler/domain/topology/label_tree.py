"""Network domains that labels of nodes make where there are no HyperNodes: racks, blocks and spines, zones, regions.

Where there are HyperNodes, zones and regions are tiers above them, for whoever allows such a tier. Zones and regions are
Kubernetes' own labels; of what is narrower, any label is taken whose last word says what it is, such as
``topology.example.com/rack``. The narrowest level that nodes have is tier 1. A domain is told from one of the same name by
the wider ones that it is in.

A ClusterNetworkTopology names the levels itself, layer by layer: then these take the place of the last words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.topology.network_domains import Domain

_WORDS = ("rack", "block", "spine")
"""What the last word of a label's key says about its level, the narrowest first."""

_KEYS = (
    ("zone", ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")),
    ("region", ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")),
)


def label_levels(table: NodeTable) -> list[tuple[str, str]]:
    """The levels that any node is labelled with, as their names and label keys, the narrowest first."""
    present = _present(table)
    found = []
    for word in _WORDS:
        named = [key for key in present if re.split(r"[/._-]", key)[-1] == word]
        found += [(word, key) for key in named[:1]]
    for word, keys in _KEYS:
        found += [(word, key) for key in [key for key in keys if key in present][:1]]
    return found


def layers_of(spec: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    """The layers of a ClusterNetworkTopology that labels make, as their names and label keys, the narrowest first."""
    found = {str(item.get("topologyLayer")): item for item in spec.get("networkTopologySpec") or ()}

    def depth(name: str) -> int:
        above: dict[str, None] = {}
        while name in found and name not in above:
            above[name] = None
            name = str(found[name].get("parentTopologyLayer") or "")
        return len(above)

    labelled = {name: tuple(map(str, item["labelKey"])) for name, item in found.items() if item.get("labelKey")}
    return sorted(labelled.items(), key=lambda item: (-depth(item[0]), item[0]))


def label_domains(
    table: NodeTable, above: int = 0, layers: Sequence[tuple[str, tuple[str, ...]]] = ()
) -> Iterator[Domain]:
    """All domains of these levels; only ``layers``, zones and regions where ``above`` is the highest tier of HyperNodes."""
    levels = label_levels(table)
    if layers:
        present = _present(table)
        named = [(name, key) for name, keys in layers for key in [key for key in keys if key in present][:1]]
        taken = {key for _, key in named}
        levels = [*named, *((word, key) for word, key in levels if word not in _WORDS and key not in taken)]
    elif above:
        levels = [(word, key) for word, key in levels if word not in _WORDS]
    for place, (word, _) in enumerate(levels):
        columns = np.stack([table.labels.column(key) for _, key in levels[place:]])
        inside = table.exists & (columns[0] > 0)
        names = [{number: name for name, number in table.labels.values_of(key).items()} for _, key in levels[place:]]
        for values in np.unique(columns[:, inside], axis=1).T.tolist():
            path = [known.get(value, "") for known, value in zip(names, values, strict=True)]
            nodes = inside & (columns == np.array(values).reshape(-1, 1)).all(axis=0)
            yield Domain(above + place + 1, "/".join(reversed([part for part in path if part])), nodes, word)


def _present(table: NodeTable) -> list[str]:
    """The label keys that any node has, sorted."""
    return [key for key in sorted(table.labels.keys()) if bool((table.labels.column(key) > 0).any())]
