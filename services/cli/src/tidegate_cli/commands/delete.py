"""``tidegate delete``: objects go, and the command waits until they are gone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kube import Key, UnknownKind, key_of
from tidegate_cli import options
from tidegate_cli.apply_order import in_order
from tidegate_cli.commands.apply import read
from tidegate_cli.departure import Leaving, wait_until_gone
from tidegate_cli.failures import complain, failed
from tidegate_cli.gathering import Selection, gather
from tidegate_cli.object_words import Wanted, check_selectors, wanted_objects
from tidegate_cli.session import Session, with_session
from tidegate_cli.spans import SECONDS
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import Applied, SyncClient


@click.command()
@options.words
@options.files
@options.selector
@options.all_namespaces
@options.dry_run
@click.option("--all", "everything", is_flag=True, help="All objects of the kind.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until they are gone.")
@click.option("--timeout", type=SECONDS, default="0", metavar="TIME", help="Wait no longer than 30s, 5m; 0 for ever.")
@click.option("--grace-period", type=click.IntRange(0), metavar="SECONDS", help="How long processes have to end.")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is as good as deleted.")
@with_session
def delete(
    session: Session,
    words: tuple[str, ...],
    files: tuple[str, ...],
    selector: str,
    all_namespaces: bool,
    dry_run: bool,
    everything: bool,
    wait: bool,
    timeout: float,
    grace_period: int | None,
    ignore_not_found: bool,
) -> None:
    """Delete objects by name, by label, or those that stand in files.

    What belongs to an object goes with it: the pods of a job, for instance.

    \b
    Examples:
      tidegate delete job/ring
      tidegate delete pods web-1 web-2 --grace-period 0
      tidegate delete -f cluster/                  what `apply -f cluster/` made
      tidegate delete pods -l app=web
      tidegate delete jobs --all -n team --no-wait
    """
    check_selectors(selector)
    if bool(words) == bool(files):
        raise click.UsageError("say what to delete: KIND/NAME, KIND with -l or --all, or -f FILE")
    keys = _keys_of_files(session, files) if files else []
    wanted = [] if files else _wanted(words, selector, everything, all_namespaces)
    with session.client() as client:
        selection = Selection("" if all_namespaces else session.namespace, selector)
        keys = keys or _keys(client, wanted, selection)
        if not keys:
            click.echo("Nothing to delete.", err=True)
            return
        results = client.delete(keys, grace_seconds=grace_period, dry_run=dry_run)
        problems = _report(results, "(dry run)" if dry_run else "", ignore_not_found)
        leaving = [Leaving(one.key, one.uid) for one in results if not one.refused]
        if wait and not dry_run:
            problems += [f"{one} is still being deleted" for one in wait_until_gone(client, leaving, timeout or None)]
    for problem in problems:
        complain(problem)
    if problems:
        raise failed()


def _wanted(words: tuple[str, ...], selector: str, everything: bool, all_namespaces: bool) -> list[Wanted]:
    wanted = wanted_objects(words)
    named = any(one.names for one in wanted)
    if named and (selector or everything or all_namespaces):
        raise click.UsageError("give names, or -l or --all, not both")
    if not named and not (selector or everything):
        raise click.UsageError(f"which {wanted[0].kind.plural}? Name them, or say -l LABELS or --all")
    return wanted


def _keys_of_files(session: Session, files: Sequence[str]) -> list[Key]:
    """What the files name, in the opposite order of going in."""
    keys = []
    for document in reversed(in_order(read(session, files))):
        try:
            keys.append(key_of(document.manifest))
        except UnknownKind as error:
            complain(f"{document.place}: {error}")
            raise failed() from None
    return keys


def _keys(client: "SyncClient", wanted: Sequence[Wanted], selection: Selection) -> list[Key]:
    named = [key for one in wanted for key in one.keys(selection.namespace)]
    if named:
        return named
    return [
        Key(one.kind.id, manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
        for one in wanted
        for manifest in gather(client, [one], selection).manifests
    ]


def _report(results: "Sequence[Applied]", note: str, ignore_missing: bool) -> list[str]:
    """A line for each that goes; what was refused is returned."""
    problems = []
    for result in results:
        if result.refused and not (result.missing and ignore_missing):
            problems.append(result.message or "; ".join(map(str, result.errors)))
        elif not result.refused:
            say(f"{result.key.kind.lower()}/{result.key.name} deleted {note}".rstrip())
    return problems
