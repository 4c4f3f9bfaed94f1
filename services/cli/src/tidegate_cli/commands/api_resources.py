"""``tidegate api-resources``: the kinds there are."""

import click

from kube import KINDS
from tidegate_cli.tables import grid
from tidegate_cli.terminal import say


@click.command("api-resources")
@click.option(
    "--namespaced", type=bool, default=None, metavar="true|false", help="Only those that live in a namespace, or not."
)
@click.option("--output", "-o", default="table", type=click.Choice(("table", "name")), help="The form.")
def api_resources(namespaced: bool | None, output: str) -> None:
    """List the kinds that Tidegate serves, with the names that they go by."""
    kinds = [one for one in KINDS.values() if namespaced is None or one.namespaced is namespaced]
    kinds.sort(key=lambda one: (one.group, one.plural))
    if output == "name":
        say("\n".join(f"{one.plural}.{one.group}" if one.group else one.plural for one in kinds))
        return
    rows = [[one.plural, ",".join(one.short), one.api_version, str(one.namespaced).lower(), one.kind] for one in kinds]
    say("\n".join(grid(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"], rows)))
