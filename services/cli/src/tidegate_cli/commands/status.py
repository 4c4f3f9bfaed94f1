"""``tidegate status``, ``whoami`` and ``version``: who is there."""

import json
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING

import click

from kube import KINDS
from tidegate_cli.failures import Unreachable, failed
from tidegate_cli.session import Session, with_session
from tidegate_cli.tables import grid
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import SystemStatus


@click.command()
@click.option("--output", "-o", default="text", type=click.Choice(("text", "json")), help="The form.")
@with_session
def status(session: Session, output: str) -> None:
    """Show the services, how far each has come, and what there is. Ends with 1 when a service does not answer.

    \b
    Examples:
      tidegate status
      tidegate status -o json
    """
    with session.client() as client:
        system, server = client.status(), client.endpoint.server
    if output == "json":
        say(json.dumps({"server": server, **asdict(system)}, indent=2))
    else:
        say("\n".join(_lines(server, system)))
    if not all(service.ready for service in system.services):
        raise failed()


def _lines(server: str, system: "SystemStatus") -> list[str]:
    rows = [[one.name, "Ready" if one.ready else "NotReady", str(one.position), one.message] for one in system.services]
    counts = [f"{count} {_plural(kind)}" for kind, count in sorted(system.objects.items()) if count]
    lines = [f"Tidegate {system.version} at {server}, revision {system.revision}", ""]
    if rows:
        lines += [*grid(["SERVICE", "STATUS", "POSITION", "MESSAGE"], rows), ""]
    return [*lines, f"Objects: {', '.join(counts) or 'none'}"]


def _plural(kind: str) -> str:
    """``jobs.batch`` for a kind whose plain name means another one."""
    info = KINDS.get(kind)
    if info is None:
        return kind
    alike = [one for one in KINDS.values() if one.plural == info.plural]
    return info.plural if len(alike) == 1 else f"{info.plural}.{info.group}"


@click.command()
@with_session
def whoami(session: Session) -> None:
    """Show who the server takes you for, and in which namespaces you may write and read."""
    with session.client() as client:
        user = client.whoami()
    if not user.namespaces and not user.reads:
        say(f"{user.name}, who may do what the cluster allows")
        return
    where = "everywhere" if "*" in user.namespaces else f"in {', '.join(user.namespaces) or 'no namespace'}"
    reads = "" if "*" in user.reads else f", and read in {', '.join(user.reads)}"
    say(f"{user.name}, who may write {where}{reads}")


@click.command()
@click.option("--client", "only_client", is_flag=True, help="Only the client's; ask no server.")
@with_session
def version(session: Session, only_client: bool) -> None:
    """Show the versions of this program and of the server."""
    say(f"Client: {metadata.version('tidegate')}")
    if only_client:
        return
    try:
        with session.client() as client:
            say(f"Server: {client.status().version}")
    except Unreachable as error:
        raise Unreachable(f"the server's version is not known: {error}") from None
