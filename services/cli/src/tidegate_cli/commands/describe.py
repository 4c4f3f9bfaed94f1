"""``tidegate describe``: all about an object, in words."""

import time
from typing import TYPE_CHECKING

import click

from kube import Key, Manifest, rfc3339
from tidegate_cli import describe as text
from tidegate_cli import options
from tidegate_cli.failures import complain, failed
from tidegate_cli.gathering import Selection, gather
from tidegate_cli.object_words import check_selectors, wanted_objects
from tidegate_cli.ownership import belonging_to, kind_of
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import Happening, SyncClient

MOST_EVENTS = 20


@click.command()
@options.words
@options.selector
@with_session
def describe(session: Session, words: tuple[str, ...], selector: str) -> None:
    """Tell all about objects: their fields, what belongs to them, and what was decided about them of late.

    \b
    Examples:
      tidegate describe job ring
      tidegate describe node/n1                    with its pods, and what they ask for
      tidegate describe pods -l app=web
    """
    wanted = wanted_objects(words)
    check_selectors(selector)
    with session.client() as client:
        found = gather(client, wanted, Selection(session.namespace, selector))
        texts = [_described(client, manifest) for manifest in found.manifests]
    if texts:
        say("\n\n\n".join(texts))
    for sentence in found.missing:
        complain(sentence)
    if not texts and not found.missing:
        click.echo("Nothing found.", err=True)
    if found.missing:
        raise failed()


def _described(client: "SyncClient", manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    namespace = str(metadata.get("namespace", ""))
    key = Key(kind_of(manifest), namespace, str(metadata["name"]))
    happened = client.events(namespace, about=key, limit=MOST_EVENTS)
    events = [_as_event(one) for one in happened] + _stored_events(client, key)
    return text.describe(manifest, belonging_to(client, manifest), events, int(time.time() * 1000))


def _as_event(happening: "Happening") -> Manifest:
    """A decision in the form in which Kubernetes tells of events."""
    reason = f"{happening.name} ({happening.reason})" if happening.reason else happening.name
    return {
        "type": "Normal" if happening.applied else "Warning",
        "reason": reason,
        "message": happening.message,
        "lastTimestamp": rfc3339(happening.at_ms),
        "source": {"component": happening.source},
    }


def _stored_events(client: "SyncClient", key: Key) -> list[Manifest]:
    if key.kind == "Event":
        return []
    kind = key.kind.partition(".")[0]
    return client.list(
        "Event", key.namespace, field_selector=f"involvedObject.name={key.name},involvedObject.kind={kind}"
    )
