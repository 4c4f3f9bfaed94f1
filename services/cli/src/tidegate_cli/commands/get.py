"""``tidegate get``: objects in tables, or as YAML, JSON and names."""

import time
from collections.abc import Sequence
from typing import Any

import click

from tidegate_cli import options
from tidegate_cli.failures import complain, failed
from tidegate_cli.gathering import Gathered, Selection, gather
from tidegate_cli.json_path import BadTemplate, filled
from tidegate_cli.object_words import Wanted, check_selectors, wanted_objects
from tidegate_cli.session import Session, with_session
from tidegate_cli.sorting import BadPath, field_path, sorted_by
from tidegate_cli.tables import own_columns, render
from tidegate_cli.terminal import say
from tidegate_cli.watching import Watching, watch_objects

_OUTPUTS = ("table", "wide", "yaml", "json", "name")


class _Form(click.Choice[str]):
    """Forms of output; who asks for one of kubectl's that is none here is told what does the same."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, given, text = str(value).partition("=")
        if kind == "go-template":
            self.fail("there is no go-template here: take jsonpath=, or `-o json` and jq for instance", param, ctx)
        if kind not in ("jsonpath", "custom-columns"):
            return super().convert(value, param, ctx)
        try:
            if not given or not text:
                raise BadTemplate(f"write {kind}=TEMPLATE, such as {_EXAMPLES[kind]}")
            if kind == "jsonpath":
                filled(text, {})
            else:
                own_columns(text)
        except BadTemplate as error:
            self.fail(str(error), param, ctx)
        return str(value)


_EXAMPLES = {"jsonpath": "jsonpath={.items[*].metadata.name}", "custom-columns": "custom-columns=NAME:.metadata.name"}


@click.command()
@options.words
@options.all_namespaces
@options.selector
@options.field_selector
@click.option(
    "--output",
    "-o",
    default="table",
    show_default=True,
    type=_Form(_OUTPUTS),
    help="The form; also jsonpath=TEMPLATE and custom-columns=TITLE:PATH,….",
)
@click.option("--watch", "-w", is_flag=True, help="Go on, and show what changes.")
@click.option("--sort-by", default="", metavar="FIELD", help="Sort by a field such as .metadata.creationTimestamp.")
@click.option("--show-labels", is_flag=True, help="Show labels in a last column.")
@click.option("--no-headers", is_flag=True, help="Leave the titles of tables out.")
@click.option("--ignore-not-found", is_flag=True, help="End with 0 when a named object is not there.")
@with_session
def get(
    session: Session,
    words: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    output: str,
    watch: bool,
    sort_by: str,
    show_labels: bool,
    no_headers: bool,
    ignore_not_found: bool,
) -> None:
    """List the objects of a kind, or of several, or show some by name.

    Kinds go by their name, plural or short name, with the group where it is not clear: `jobs` are Volcano's,
    `jobs.batch` Kubernetes' own. `all` is everything that runs or makes something run; `tidegate api-resources`
    lists all kinds.

    \b
    Examples:
      tidegate get pods                            in the namespace default
      tidegate get jobs,pods -A -o wide            two kinds, in all namespaces, more columns
      tidegate get job ring -o yaml                all of one object
      tidegate get pods -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName
      tidegate get pods -o jsonpath='{range .items[*]}{.metadata.name}{"\\n"}{end}'
      tidegate get pods -l app=web -w              those with a label, and go on as they change
      tidegate get pods --field-selector status.phase=Pending --sort-by .metadata.creationTimestamp
    """
    wanted = wanted_objects(words)
    check_selectors(selector, field_selector)
    selection = Selection("" if all_namespaces else session.namespace, selector, field_selector)
    path = _path(sort_by)
    form = "" if output == "table" else output
    _check(wanted, all_namespaces, selector or field_selector)
    if watch:
        watching = Watching(form, all_namespaces, show_labels, path)
        watch_objects(session, wanted, selection, watching)
        return
    with session.client() as client:
        found = gather(client, wanted, selection)
    if path:
        found.manifests = sorted_by(found.manifests, path)
    single = len(wanted) == 1 and len(wanted[0].names) == 1
    if found.manifests or (form.partition("=")[0] in ("yaml", "json", "jsonpath") and not single):
        text = render(
            found.manifests,
            _now(),
            output=form,
            all_namespaces=all_namespaces,
            show_labels=show_labels,
            single=single,
        )
        tabular = form in ("", "wide") or form.startswith("custom-columns=")
        say(_headless(text) if no_headers and tabular else text.removesuffix("\n"))
    _tell_missing(found, wanted, selection.namespace, ignore_not_found)


def _check(wanted: Sequence[Wanted], all_namespaces: bool, selectors: str) -> None:
    named = any(one.names for one in wanted)
    if named and all_namespaces:
        raise click.UsageError("a name is a name in one namespace: give -n NAMESPACE instead of -A")
    if named and selectors:
        raise click.UsageError("give names or a selector, not both")


def _path(text: str) -> str:
    try:
        return field_path(text) if text else ""
    except BadPath as error:
        raise click.UsageError(f"--sort-by: {error}") from None


def _tell_missing(found: Gathered, wanted: Sequence[Wanted], namespace: str, ignore: bool) -> None:
    if not found.manifests and not any(one.names for one in wanted):
        kinds = ", ".join(one.kind.plural for one in wanted) if len(wanted) < 4 else "objects"
        where = f" in namespace {namespace}" if namespace and any(one.kind.namespaced for one in wanted) else ""
        click.echo(f"No {kinds} found{where}.", err=True)
    if found.missing and not ignore:
        for sentence in found.missing:
            complain(sentence)
        raise failed()


def _headless(text: str) -> str:
    return "\n\n".join(table.partition("\n")[2] for table in text.split("\n\n"))


def _now() -> int:
    return int(time.time() * 1000)
