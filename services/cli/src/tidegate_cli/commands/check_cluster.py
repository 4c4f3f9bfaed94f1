"""``tidegate check-cluster``: what would change on a Kubernetes cluster if Tidegate acted on its objects."""

import asyncio
import json
from pathlib import Path

import click

from tidegate_cli.failures import Failure, Unreachable, failed
from tidegate_cli.terminal import say


@click.command("check-cluster")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar="KUBECONFIG",
    required=True,
    help="The file that says how to reach the cluster.  [env: KUBECONFIG]",
)
@click.option("--context", default="", help="The context of the kubeconfig  [default: its current one]")
@click.option(
    "--scheduler-names",
    default="tidegate",
    show_default=True,
    help="Whose pods Tidegate is to place, such as tidegate,volcano.",
)
@click.option(
    "--output", "-o", default="text", type=click.Choice(("text", "json", "yaml")), help="In words, or as data."
)
def check_cluster(kubeconfig: Path, context: str, scheduler_names: str, output: str) -> None:
    """List what would differ if Tidegate took a cluster over, before anything is switched. Nothing is written.

    It names other controllers that act on the same objects, objects that would be refused, fields without an effect, and
    settings of Volcano, Kueue and Koordinator that mean something else here. Ends with 1 while there is something to settle.

    \b
    Examples:
      tidegate check-cluster --kubeconfig ~/.kube/config
      tidegate check-cluster --scheduler-names tidegate,volcano -o json
    """
    from apiserver import NoAccess, Refused
    from apiserver import Unreachable as NoAnswer
    from tidegate_cli.check_cluster.finding import Level
    from tidegate_cli.check_cluster.reading import read
    from tidegate_cli.check_cluster.report import data, findings, lines

    names = frozenset(name for name in map(str.strip, scheduler_names.split(",")) if name)
    try:
        found = findings(asyncio.run(read(kubeconfig, context)), names)
    except (NoAccess, Refused) as error:
        raise Failure(str(error)) from None
    except NoAnswer as error:
        raise Unreachable(str(error)) from None
    if output == "json":
        say(json.dumps(data(found), indent=2, ensure_ascii=False))
    elif output == "yaml":
        import yaml

        say(yaml.safe_dump(data(found), sort_keys=False, allow_unicode=True, width=120).rstrip())
    else:
        say("\n".join(lines(found)))
    if any(one.level is Level.CONFLICT for one in found):
        raise failed()
