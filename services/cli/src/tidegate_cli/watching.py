"""Watching objects on the command line: what there is, then a row or document for each change, until Ctrl-C."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import click

from kube import Manifest
from kube.selectors import parse_fields
from tidegate_cli.gathering import Selection
from tidegate_cli.lasting_watch import Scope, lasting_watch
from tidegate_cli.object_words import Wanted
from tidegate_cli.running_table import RunningTable
from tidegate_cli.session import Session
from tidegate_cli.sorting import sorted_by
from tidegate_cli.tables import render
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import Change


@dataclass(frozen=True, slots=True)
class Watching:
    """How to show what is watched. ``path`` is the field that the first rows are sorted by."""

    output: str
    all_namespaces: bool
    show_labels: bool
    path: str = ""


def watch_objects(session: Session, wanted: Sequence[Wanted], selection: Selection, watching: Watching) -> None:
    """Show the objects and their changes without end. Raises click.UsageError for more than can be watched at once."""
    if len(wanted) != 1 or len(wanted[0].names) > 1:
        raise click.UsageError("watch one kind at a time, or one object: tidegate get pods -w")
    with session.client() as client:
        one = wanted[0]
        name = one.names[0] if one.names else ""
        scope = Scope(one.kind.id, one.place(selection.namespace), name, selection.labels)
        changes = lasting_watch(client, scope)
        meant = parse_fields(selection.fields)
        present = [change.manifest for change in _until_bookmark(changes) if meant(change.manifest)]
        later = (change.manifest for change in changes if change.manifest and meant(change.manifest))
        present = sorted_by(present, watching.path) if watching.path else present
        _show(one.kind.id, present, later, watching)


def _show(kind: str, present: list[Manifest], later: Iterator[Manifest], watching: Watching) -> None:
    if watching.output not in ("", "wide"):
        for manifest in chain(present, later):
            _document(manifest, watching.output)
        return
    wide = watching.output == "wide"
    table = RunningTable(kind, wide=wide, namespaces=watching.all_namespaces, labels=watching.show_labels)
    begun = bool(present)
    if begun:
        say("\n".join(table.begin(present, _now())))
    for manifest in later:
        say(table.row(manifest, _now()) if begun else "\n".join(table.begin([manifest], _now())))
        begun = True


def _document(manifest: Manifest, output: str) -> None:
    text = render([manifest], _now(), output=output, single=True)
    say(f"---\n{text}" if output == "yaml" else text)


def _until_bookmark(changes: "Iterator[Change]") -> "Iterator[Change]":
    for change in changes:
        if change.type == "bookmark":
            return
        yield change


def _now() -> int:
    return int(time.time() * 1000)
