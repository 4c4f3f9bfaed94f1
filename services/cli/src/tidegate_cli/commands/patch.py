"""``tidegate patch``: change fields of an object."""

from typing import Any

import click
import yaml

from tidegate_cli import options
from tidegate_cli.failures import complain, failed
from tidegate_cli.object_words import one_object
from tidegate_cli.session import Session, with_session
from tidegate_cli.shell_words import complete_objects
from tidegate_cli.terminal import say


@click.command()
@click.argument("words", nargs=-1, metavar="KIND/NAME", shell_complete=complete_objects)
@click.option("--patch", "-p", "text", default="", metavar="PATCH", help="The patch, as JSON or YAML.")
@click.option("--patch-file", type=click.File(), metavar="FILE", help="A file with the patch, - for standard input.")
@click.option(
    "--type",
    "form",
    default="merge",
    show_default=True,
    type=click.Choice(("merge", "json")),
    help="A merge patch (RFC 7396) or a JSON patch (RFC 6902).",
)
@options.dry_run
@with_session
def patch(session: Session, words: tuple[str, ...], text: str, patch_file: Any, form: str, dry_run: bool) -> None:
    """Change fields of an object; all others stay as they are.

    It is done to the object as it is when it is written. A patch that names a resourceVersion in the metadata is meant for
    that version only.

    A merge patch is the part of the object that is to be another one; null removes a field, a list is replaced as a
    whole. A JSON patch is a list of operations. What the object may not become is refused, as with apply.

    \b
    Examples:
      tidegate patch queue/research -p '{"spec": {"weight": 4}}'
      tidegate patch job/ring -p '{"metadata": {"labels": {"team": null}}}'
      tidegate patch deployment/web --type json -p '[{"op": "replace", "path": "/spec/replicas", "value": 3}]'
      tidegate patch node/n1 --patch-file taints.yaml
    """
    if bool(text) == (patch_file is not None):
        raise click.UsageError("give the patch: -p PATCH or --patch-file FILE")
    kind, name = one_object(words)
    change = _read(text or patch_file.read(), form)
    with session.client() as client:
        namespace = session.namespace if kind.namespaced else ""
        result = client.patch(kind.id, name, change, namespace, dry_run=dry_run)
    subject = f"{kind.id.lower()}/{name}"
    for warning in result.warnings:
        click.echo(f"{click.style('Warning:', fg='yellow')} {subject}: {warning}", err=True)
    if result.refused:
        for line in [str(error) for error in result.errors] or [result.message]:
            complain(line)
        raise failed()
    done = "patched" if result.outcome == "configured" else "patched (no change)"
    say(f"{subject} {done}{' (dry run)' if dry_run else ''}")


def _read(text: str, form: str) -> Any:
    try:
        change = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise click.UsageError(f"the patch cannot be read: {' '.join(str(error).split())}") from None
    wanted: type = dict if form == "merge" else list
    if not isinstance(change, wanted):
        rule = "a merge patch is a mapping of fields" if form == "merge" else "a JSON patch is a list of operations"
        raise click.UsageError(f"{rule}; see `tidegate patch --help`")
    return change
