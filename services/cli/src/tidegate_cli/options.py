"""Options that several commands have."""

import click

from tidegate_cli.shell_words import complete_objects

words = click.argument("words", nargs=-1, metavar="KIND[/NAME] [NAME]...", shell_complete=complete_objects)
files = click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="A file of YAML or JSON, a folder of such files, or - for standard input. May be given more than once.",
)


def _say_files(context: click.Context, argument: click.Parameter, given: tuple[str, ...]) -> None:
    """Refuse words where files are meant, as in ``apply job.yaml`` or ``create namespace x``."""
    if given:
        raise click.UsageError(
            f"{context.info_name} takes files: -f FILE, -f FOLDER, or -f - for standard input", context
        )


no_words = click.argument("words", nargs=-1, metavar="", expose_value=False, callback=_say_files)
selector = click.option(
    "--selector", "-l", default="", metavar="LABELS", help="Only those with labels such as app=web,tier in (a,b)."
)
field_selector = click.option(
    "--field-selector", default="", metavar="FIELDS", help="Only those with fields such as status.phase=Running."
)
all_namespaces = click.option("--all-namespaces", "-A", is_flag=True, help="In all namespaces.")
dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
