"""A table that goes on: rows are written as things change, under titles that are written once."""

from collections.abc import Iterable, Sequence

from kube import Manifest
from tidegate_cli.cells import pairs
from tidegate_cli.column import Column
from tidegate_cli.columns import columns_of

_GAP = 3
_NAMESPACE = Column("NAMESPACE", lambda one, _: str(one["metadata"].get("namespace", "")))
_NAME = Column("NAME", lambda one, _: str(one["metadata"]["name"]))
_LABELS = Column("LABELS", lambda one, _: pairs(one["metadata"].get("labels")))


class RunningTable:
    """The table of objects of the kind with group ``kind``; its columns only ever grow wider."""

    def __init__(self, kind: str, *, wide: bool, namespaces: bool, labels: bool) -> None:
        before = [_NAMESPACE] if namespaces else []
        after = [_LABELS] if labels else []
        self._columns = [*before, _NAME, *columns_of(kind, wide=wide), *after]
        self._titles = [column.title for column in self._columns]
        self._widths = [len(title) for title in self._titles]

    def begin(self, manifests: Sequence[Manifest], now: int) -> list[str]:
        """The titles, and the rows of what there is at ``now`` (ms)."""
        rows = [self._cells(manifest, now) for manifest in manifests]
        self._widen(rows)
        return [self._line(cells) for cells in (self._titles, *rows)]

    def row(self, manifest: Manifest, now: int) -> str:
        """One more row."""
        cells = self._cells(manifest, now)
        self._widen([cells])
        return self._line(cells)

    def _cells(self, manifest: Manifest, now: int) -> list[str]:
        return [column.read(manifest, now) for column in self._columns]

    def _widen(self, rows: Iterable[Sequence[str]]) -> None:
        for cells in rows:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]

    def _line(self, cells: Sequence[str]) -> str:
        return "".join(cell.ljust(width + _GAP) for cell, width in zip(cells, self._widths, strict=True)).rstrip()
