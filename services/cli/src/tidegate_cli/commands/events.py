"""``tidegate events``: what was decided and done of late."""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kube import rfc3339_micro
from tidegate_cli import options
from tidegate_cli.cells import span
from tidegate_cli.object_words import key_in, one_object
from tidegate_cli.session import Session, with_session
from tidegate_cli.tables import grid
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import Happening


@click.command()
@options.all_namespaces
@click.option("--for", "about", metavar="KIND/NAME", help="Only what was about this object.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 100_000), help="The newest so many.")
@click.option("--dead", is_flag=True, help="The messages that could not be handled and were put aside, with why.")
@click.option("--writes", is_flag=True, help="What users wrote, and who, instead of what was decided.")
@click.option("--output", "-o", default="table", type=click.Choice(("table", "wide", "json")), help="The form.")
@with_session
def events(
    session: Session, all_namespaces: bool, about: str | None, limit: int, dead: bool, writes: bool, output: str
) -> None:
    """List what the services decided and what came of it, oldest first.

    \b
    Examples:
      tidegate events -n team
      tidegate events --for job/ring
      tidegate events -A --limit 20
      tidegate events -o wide                      with the ids of decisions, for `tidegate replay`
      tidegate events --dead                       what was put aside
      tidegate events --writes --for job/ring      who made it, changed it, deleted it
    """
    kind = one_object((about,)) if about else None
    key = key_in(*kind, session.namespace) if kind else None
    namespace = "" if all_namespaces or dead or (key and not key.namespace) else session.namespace
    with session.client() as client:
        happened = client.events(namespace, about=key, limit=limit, dead=dead, writes=writes)
    if output == "json":
        say(json.dumps([_data(one) for one in happened], indent=2, ensure_ascii=False))
    elif happened:
        say("\n".join(_table(happened, int(time.time() * 1000), namespaces=all_namespaces, ids=output == "wide")))
    else:
        click.echo("Nothing was put aside." if dead else "Nothing happened of late.", err=True)


def _table(happened: "Sequence[Happening]", now: int, *, namespaces: bool, ids: bool = False) -> list[str]:
    place = [*(["DECISION"] if ids else []), *(["NAMESPACE"] if namespaces else [])]
    titles = [*place, "LAST SEEN", "SOURCE", "EVENT", "REASON", "OBJECT", "MESSAGE"]
    rows = [
        [
            *([one.id] if ids else []),
            *([one.about.namespace] if namespaces else []),
            span(max(0, now - one.at_ms) // 1000),
            one.source,
            one.name,
            one.reason,
            f"{one.about.kind.partition('.')[0].lower()}/{one.about.name}" if one.about.name else "",
            " ".join(one.message.split()),
        ]
        for one in happened
    ]
    return grid(titles, rows)


def _data(happening: "Happening") -> dict[str, object]:
    kind, namespace, name = happening.about
    return {
        "time": rfc3339_micro(happening.at_ms),
        "source": happening.source,
        "name": happening.name,
        "reason": happening.reason,
        "message": happening.message,
        "about": {"kind": kind, "namespace": namespace, "name": name},
        "applied": happening.applied,
        "revision": happening.revision,
    }
