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
selector = click.option(
    "--selector", "-l", default="", metavar="LABELS", help="Only those with labels such as app=web,tier in (a,b)."
)
field_selector = click.option(
    "--field-selector", default="", metavar="FIELDS", help="Only those with fields such as status.phase=Running."
)
all_namespaces = click.option("--all-namespaces", "-A", is_flag=True, help="In all namespaces.")
dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
