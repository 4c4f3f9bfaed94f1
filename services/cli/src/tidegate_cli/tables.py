"""Objects as ``tidegate get`` prints them: tables like kubectl's, or YAML, JSON and names. Pure: the time is given."""

import json
import re
from collections.abc import Sequence

import yaml

from kube import Manifest, kind_id
from tidegate_cli.column import Column
from tidegate_cli.columns import columns_of
from tidegate_cli.json_path import BadTemplate, filled, find, shown

OUTPUTS = ("", "wide", "yaml", "json", "name")


class UnknownOutput(ValueError):
    """A form of output that there is not."""


def render(
    manifests: Sequence[Manifest],
    now: int,
    *,
    output: str = "",
    all_namespaces: bool = False,
    show_labels: bool = False,
    single: bool = False,
) -> str:
    """The objects in the form ``output`` (one of OUTPUTS) at the time ``now`` (ms), with no line end at the end.

    ``single`` says that one object was asked for by name: YAML and JSON are then that object instead of a List.
    Objects of several kinds stand in a table each. ``jsonpath=TEMPLATE`` and ``custom-columns=TITLE:PATH,…`` are kubectl's.
    Raises UnknownOutput, BadTemplate.
    """
    kind, given, text = output.partition("=")
    if given and kind == "jsonpath":
        return filled(text, manifests[0] if single and len(manifests) == 1 else _listed(manifests))
    if given and kind == "custom-columns":
        return _own_columns(text, manifests)
    if output not in OUTPUTS:
        raise UnknownOutput(f"{output!r} is no form of output; one of {', '.join(filter(None, OUTPUTS))}")
    if output == "name":
        return "\n".join(map(full_name, manifests))
    if output in ("yaml", "json"):
        return _document(manifests, output, single=single)
    groups: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        groups.setdefault(_kind(manifest), []).append(manifest)
    several = len(groups) > 1
    return "\n\n".join(
        _table(kind, group, now, wide=output == "wide", namespaces=all_namespaces, labels=show_labels, prefixed=several)
        for kind, group in groups.items()
    )


def own_columns(text: str) -> list[tuple[str, str]]:
    """``NAME:.metadata.name,NODE:.spec.nodeName`` as titles and paths. Raises BadTemplate."""
    columns = []
    for part in re.split(r",(?=[^,:\[\]]*:)", text):
        title, colon, path = part.partition(":")
        if not (title and colon and path):
            raise BadTemplate(f"{part!r} is no column; write TITLE:.path.to.field")
        path = path.strip().removeprefix("{").removesuffix("}")
        find(path, {})
        columns.append((title, path))
    return columns


def _own_columns(text: str, manifests: Sequence[Manifest]) -> str:
    columns = own_columns(text)
    rows = [[",".join(map(shown, find(path, manifest))) or "<none>" for _, path in columns] for manifest in manifests]
    return "\n".join(grid([title for title, _ in columns], rows))


def full_name(manifest: Manifest) -> str:
    """``pod/web``, ``job.batch.volcano.sh/train``."""
    return f"{_kind(manifest).lower()}/{manifest['metadata']['name']}"


def grid(titles: Sequence[str], rows: Sequence[Sequence[str]], gap: int = 3) -> list[str]:
    """Lines of a table whose columns are as wide as their widest cell; the last one is not filled up."""
    lines = [list(titles), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    return [
        "".join(cell.ljust(width + gap) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]


def _table(
    kind: str, manifests: Sequence[Manifest], now: int, *, wide: bool, namespaces: bool, labels: bool, prefixed: bool
) -> str:
    columns = columns_of(kind, wide=wide)
    # Events have no name that means something to a reader.
    named = [] if kind == "Event" else [Column("NAME", lambda one, _: _name(one, prefixed=prefixed))]
    placed = [Column("NAMESPACE", lambda one, _: str(one["metadata"].get("namespace", "")))] if namespaces else []
    labelled = [Column("LABELS", lambda one, _: _labels(one))] if labels else []
    shown = [*placed, *named, *columns, *labelled]
    rows = [[column.read(manifest, now) for column in shown] for manifest in manifests]
    return "\n".join(grid([column.title for column in shown], rows))


def _name(manifest: Manifest, *, prefixed: bool) -> str:
    return full_name(manifest) if prefixed else str(manifest["metadata"]["name"])


def _labels(manifest: Manifest) -> str:
    labels = manifest["metadata"].get("labels") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items())) or "<none>"


def _kind(manifest: Manifest) -> str:
    return kind_id(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))


def _document(manifests: Sequence[Manifest], output: str, *, single: bool) -> str:
    whole = manifests[0] if single and len(manifests) == 1 else _listed(manifests)
    if output == "json":
        return json.dumps(whole, indent=4, ensure_ascii=False)
    return yaml.dump(whole, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120).rstrip("\n")


def _listed(manifests: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": list(manifests)}


class _Dumper(yaml.SafeDumper):
    """Every part is written out where it stands, also when objects share it."""

    def ignore_aliases(self, data: object) -> bool:
        return True
