"""``tidegate snapshot`` and ``tidegate replay``: all that decisions depend on, in a file; and a decision made again from it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kube.words import counted
from tidegate_cli.failures import Failure, failed
from tidegate_cli.object_words import key_in, one_object
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.snapshot.v1.snapshot_pb2 import SystemSnapshot

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--output", "-o", type=FILE, default=None, help="Where to write it; snapshot-REVISION.tgs here if left out."
)
@click.option(
    "--decision",
    default="",
    metavar="ID | KIND/NAME",
    help="The state in which this decision was made, not the present.",
)
@with_session
def snapshot(session: Session, output: Path | None, decision: str) -> None:
    """Write all that decisions depend on into a file: every object but the values of Secrets, and what is under way.

    Nothing stops for it. `tidegate whatif --snapshot FILE` and `tidegate replay FILE` read it, here or elsewhere.

    \b
    Examples:
      tidegate snapshot -o monday.tgs
      tidegate snapshot --decision gang_scheduler/7/42      `tidegate events -o wide` has the ids
      tidegate snapshot --decision podgroup/ring            the newest about it
    """
    from tidegate.codec.snapshots import unpack

    content = fetched(session, decision and decision_meant(session, decision))
    taken = unpack(content)
    path = output or Path(f"snapshot-{taken.facts.revision}.tgs")
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}") from None
    count = sum(len(part.changes) for part in taken.facts.parts)
    say(f"{path}: {counted(count, 'object')} as of revision {taken.facts.revision}, {len(content):,} bytes")


@click.command()
@click.argument("source", metavar="FILE | DECISION | KIND/NAME")
@click.option("--output", "-o", default="text", type=click.Choice(("text", "json")), help="In words, or as data.")
@with_session
def replay(session: Session, source: str, output: str) -> None:
    """Make a decision again from the state in which it was made, and compare what comes out, byte by byte.

    Takes a file of `tidegate snapshot --decision`, the id of a decision of the running system, or an object: then it is the
    newest decision about it. Ends with 1 if anything else comes out.

    \b
    Examples:
      tidegate replay gang_scheduler/7/42
      tidegate replay job/ring
      tidegate replay decision.tgs
    """
    from chassis.remaking import remake
    from tidegate_cli.sim.services import DECIDING, core_of
    from tidegate_cli.whatif.restoring import policy_of
    from tidegate_cli.whatif.words import remade_lines

    path = Path(source)
    taken = opened(path) if path.is_file() else unpacked(fetched(session, decision_meant(session, source)))
    if not taken.commit:
        raise Failure(f"{source} was not taken for a decision: `tidegate snapshot --decision ID` does that")
    service = taken.decision_id.partition("/")[0]
    remade = remake(taken, core_of(service, policy_of(taken)), DECIDING[service].interest)
    if output == "json":
        compared = [{"id": one.decision_id, "name": one.made.name, "same": one.same} for one in remade.compared]
        others = [{"name": one.name, "about": str(one.subject)} for one in remade.others]
        say(
            json.dumps({"revision": remade.decided_on, "nowMs": remade.now_ms, "decisions": compared, "others": others})
        )
    else:
        say("\n".join(remade_lines(remade)))
    if not remade.same:
        raise failed()


def decision_meant(session: Session, text: str) -> str:
    """The id of a decision: ``text`` itself, or that of the newest one about the object that it names; raises Failure."""
    if text.count("/") != 1:
        return text
    kind, name = one_object((text,))
    key = key_in(kind, name, session.namespace)
    with session.client() as client:
        happened = client.events(key.namespace, about=key, limit=1)
    if not happened:
        raise Failure(f"nothing was decided of late about {text}; `tidegate events -o wide` has the ids of decisions")
    return happened[-1].id


def fetched(session: Session, decision: str = "") -> bytes:
    """A snapshot of the running system; raises Failure where the decision is not kept."""
    from tidegate.client import ClientError, Unavailable

    with session.client() as client:
        try:
            return client.snapshot(decision)
        except Unavailable:
            raise
        except ClientError as error:
            raise Failure(str(error)) from None


def opened(path: Path) -> "SystemSnapshot":
    """The snapshot in a file; raises Failure."""
    try:
        return unpacked(path.read_bytes(), str(path))
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}") from None


def unpacked(content: bytes, name: str = "the snapshot") -> "SystemSnapshot":
    """The snapshot in some bytes; raises Failure."""
    from tidegate.codec.snapshots import NoSnapshot, unpack

    try:
        return unpack(content)
    except NoSnapshot as error:
        raise Failure(f"{name}: {error}") from None
