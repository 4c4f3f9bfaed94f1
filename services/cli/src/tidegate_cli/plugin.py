"""The plug-in for kubectl: ``kubectl tidegate``. It asks the Tidegate of the cluster that kubectl means, as the same user."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tidegate_cli.command_table import COMMANDS
from tidegate_cli.lazy_group import LazyGroup
from tidegate_cli.main import run_program
from tidegate_cli.port_forward import Kubectl
from tidegate_cli.session import Session

OFFERED = ("explain", "queue", "top", "whatif", "status", "events", "whoami", "check-cluster")
"""What kubectl does not do itself."""
SERVICE, PORT = "tidegate-admission", 7443


@click.group(
    cls=LazyGroup,
    entries=[entry for entry in COMMANDS if entry.name in OFFERED],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Which cluster, and who is asking.  [env: KUBECONFIG; else ~/.kube/config]",
)
@click.option("--context", "in_context", metavar="NAME", default="", help="The context of the kubeconfig.")
@click.option("--namespace", "-n", metavar="NAME", help="The namespace meant  [default: the context's]")
@click.option("--tidegate-namespace", metavar="NAME", default="tidegate-system", show_default=True)
@click.option("--server", metavar="HOST:PORT", help="Where Tidegate is, if not in the cluster.  [env: TIDEGATE_SERVER]")
@click.pass_context
def plugin(
    context: click.Context,
    kubeconfig: Path | None,
    in_context: str,
    namespace: str | None,
    tidegate_namespace: str,
    server: str | None,
) -> None:
    """Why does it wait, how do the queues stand, and who uses what? From the Tidegate of a cluster.

    \b
    Examples:
      kubectl tidegate explain pytorchjob/train -n team
      kubectl tidegate queue research
      kubectl tidegate top nodes
    """
    flags = [
        *(("--kubeconfig", str(kubeconfig)) if kubeconfig else ()),
        *(("--context", in_context) if in_context else ()),
    ]
    kubectl = Kubectl(tuple(flags))
    file = kubeconfig or _usual_kubeconfig()
    if context.invoked_subcommand == "check-cluster":
        context.default_map = {"check-cluster": {"kubeconfig": file, "context": in_context}}
        return
    namespace = namespace or kubectl.says("config", "view", "--minify", "-o", "jsonpath={..namespace}") or None
    server, authority = server or os.environ.get("TIDEGATE_SERVER"), None
    if server is None and "--help" not in sys.argv[1:]:
        server, authority = context.with_resource(kubectl.forwarded(tidegate_namespace, SERVICE, PORT))
    context.obj = Session(server, None, None, None, namespace, authority, file, in_context)


def _usual_kubeconfig() -> Path:
    """The file that kubectl reads; of several that KUBECONFIG names the first."""
    named = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    return next((path for path in named if path.exists()), Path.home() / ".kube" / "config")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the plug-in; the result is the exit code."""
    return run_program(plugin, arguments, "kubectl tidegate")


if __name__ == "__main__":
    sys.exit(run())
