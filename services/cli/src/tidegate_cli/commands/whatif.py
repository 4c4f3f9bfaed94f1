"""``tidegate whatif``: what would become of manifests if they were applied."""

import json
from pathlib import Path

import click

from kube import parse_duration, rfc3339
from tidegate_cli import options
from tidegate_cli.apply_order import in_order
from tidegate_cli.commands.apply import read
from tidegate_cli.commands.snapshot import FILE, fetched, opened, unpacked
from tidegate_cli.failures import failed
from tidegate_cli.object_words import key_in, one_object
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say


@click.command()
@options.words
@options.files
@click.option(
    "--snapshot", "file", type=FILE, default=None, help="Ask this file of `tidegate snapshot`, not the system."
)
@click.option(
    "--horizon", default="168h", show_default=True, metavar="TIME", help="How far to look ahead, such as 12h."
)
@click.option("--output", "-o", default="text", type=click.Choice(("text", "json")), help="In words, or as data.")
@with_session
def whatif(
    session: Session, words: tuple[str, ...], files: tuple[str, ...], file: Path | None, horizon: str, output: str
) -> None:
    """Say what would become of the objects in files: would they start now, where, at whose cost, else why not and when.
    Of objects that are there already (KIND/NAME) it is said when they will start.

    The services themselves answer, in virtual time, on a snapshot of the system: nothing is applied. Work that runs ends when
    its annotation tidegate.dev/running-estimate says so; what says nothing is taken to run for ever. Ends with 1 if an
    object would be refused.

    \b
    Examples:
      tidegate whatif -f job.yaml
      tidegate whatif job/ring
      tidegate whatif -f jobs/ --snapshot monday.tgs -o json
    """
    from tidegate_cli.whatif.question import Question
    from tidegate_cli.whatif.restoring import restored
    from tidegate_cli.whatif.words import answer_lines

    try:
        ahead = parse_duration(horizon)
    except ValueError:
        raise click.BadParameter(f"{horizon!r} is no time such as 90m or 48h", param_hint="--horizon") from None
    keys = [key_in(*one_object((word,)), session.namespace) for word in words]
    documents = in_order(read(session, files)) if files or not keys else []
    taken = opened(file) if file is not None else unpacked(fetched(session))
    world = restored(taken)
    try:
        answers = Question(world, ahead).ask([document.manifest for document in documents], keys)
    finally:
        world.close()
    if output == "json":
        head = {"revision": taken.facts.revision, "asOf": rfc3339(taken.taken_at_ms)}
        say(json.dumps({**head, "answers": [one.manifest() for one in answers]}, indent=2, ensure_ascii=False))
    else:
        say("\n".join(line for one in answers for line in answer_lines(one, taken.taken_at_ms)))
    if any(one.verdict in ("refused", "missing") for one in answers):
        raise failed()
