"""``tidegate apply`` and ``tidegate create``: manifests in, a line for each out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tidegate_cli import options
from tidegate_cli.apply_order import in_order
from tidegate_cli.documents import Document, Unreadable
from tidegate_cli.failures import complain, failed
from tidegate_cli.namespaced import documents_in
from tidegate_cli.session import Session, with_session
from tidegate_cli.tables import full_name
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import Applied


@click.command()
@options.files
@options.no_words
@options.dry_run
@click.option("--replace", is_flag=True, help="Replace the spec of what exists instead of merging into it.")
@with_session
def apply(session: Session, files: tuple[str, ...], dry_run: bool, replace: bool) -> None:
    """Create the objects that are not there and update those that are.

    Queues go in before the jobs that name them, whatever file they stand in. If any file cannot be read, nothing is
    applied. Ends with 1 when an object was refused; the others are applied all the same.

    \b
    Examples:
      tidegate apply -f job.yaml
      tidegate apply -f cluster/ -f job.yaml      all files in a folder, and one more
      cat job.yaml | tidegate apply -f -          from standard input
      tidegate apply -f job.yaml --dry-run        check it, change nothing
    """
    _hand_in(session, files, dry_run=dry_run, overwrite=replace)


@click.command()
@options.files
@options.no_words
@options.dry_run
@with_session
def create(session: Session, files: tuple[str, ...], dry_run: bool) -> None:
    """Create objects; one that exists already is refused, and stays as it is.

    \b
    Examples:
      tidegate create -f job.yaml
      tidegate create -f run.yaml                 metadata.generateName gives each run a name of its own
    """
    _hand_in(session, files, dry_run=dry_run, create_only=True)


def _hand_in(
    session: Session, files: Sequence[str], *, dry_run: bool, overwrite: bool = False, create_only: bool = False
) -> None:
    documents = in_order(read(session, files))
    manifests = [document.manifest for document in documents]
    with session.client() as client:
        results = client.apply(manifests, dry_run=dry_run, replace=overwrite, create_only=create_only)
    for document, result in zip(documents, results, strict=True):
        _report(document, result, " (dry run)" if dry_run else "")
    refused = sum(result.refused for result in results)
    if refused:
        complain(f"{refused} of {len(results)} refused" if len(results) > 1 else "nothing was applied")
        raise failed()


def read(session: Session, files: Sequence[str]) -> list[Document]:
    """The documents of all files, in the namespace that is meant. What is wrong with them is said here."""
    if not files:
        raise click.UsageError("say which files: -f FILE, -f FOLDER, or -f - for standard input")
    try:
        documents = documents_in(session, files)
    except Unreadable as error:
        for problem in error.problems:
            complain(problem)
        raise failed() from None
    if not documents:
        complain(f"{', '.join(files)}: no manifests in there")
        raise failed()
    return documents


def _report(document: Document, result: "Applied", note: str) -> None:
    name = _document_name(document, result.key.name)
    for warning in result.warnings:
        click.echo(f"{click.style('Warning:', fg='yellow')} {name}: {warning}", err=True)
    if not result.refused:
        say(f"{name} {result.outcome}{note}")
        return
    click.echo(f"{name} {click.style('refused', fg='red')} ({document.place})", err=True)
    for line in [str(error) for error in result.errors] or [result.message]:
        click.echo(f"  {line}", err=True)


def _document_name(document: Document, given: str = "") -> str:
    """``job.batch.volcano.sh/ring``; the name that the server gave wins over a missing one."""
    metadata = document.manifest.get("metadata") or {}
    name = given or metadata.get("name") or metadata.get("generateName") or "?"
    return full_name({**document.manifest, "metadata": {"name": name}})
