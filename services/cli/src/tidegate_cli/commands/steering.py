"""``tidegate suspend``, ``resume``, ``scale`` and ``pause``: a word to a running job or workload, or to the scheduler."""

from collections.abc import Callable

import click

from kube import KindInfo
from tidegate_cli import options
from tidegate_cli.failures import complain, failed
from tidegate_cli.object_words import named_objects
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say

SCHEDULING = "scheduling"


@click.command()
@options.words
@with_session
def suspend(session: Session, words: tuple[str, ...]) -> None:
    """Take the pods of jobs away and keep the jobs.

    \b
    Examples:
      tidegate suspend job/ring
      tidegate suspend pytorchjob mnist bert -n team
    """
    with session.client() as client:
        _each(words, lambda kind, name: client.suspend(kind.id, name, session.namespace))


@click.command()
@options.words
@with_session
def resume(session: Session, words: tuple[str, ...]) -> None:
    """Let suspended jobs, or scheduling, go on.

    \b
    Examples:
      tidegate resume job/ring
      tidegate resume scheduling
    """
    with session.client() as client:
        if words == (SCHEDULING,):
            say(client.set_scheduling(paused=False))
            return
        _each(words, lambda kind, name: client.resume(kind.id, name, session.namespace))


@click.command()
@click.argument("what", type=click.Choice((SCHEDULING,)))
@click.option("--reason", default="", metavar="TEXT", help="Why, for all who ask what they wait for.")
@with_session
def pause(session: Session, what: str, reason: str) -> None:
    """Place nothing and evict nobody until `tidegate resume scheduling`, also over restarts.

    What runs goes on, and what is handed in waits.

    \b
    Examples:
      tidegate pause scheduling --reason "the network is being mended"
    """
    with session.client() as client:
        say(client.set_scheduling(paused=True, reason=reason))


@click.command()
@options.words
@click.option("--replicas", required=True, type=click.IntRange(0, 2**31 - 1), help="How many there are to be.")
@click.option(
    "--task",
    "--replica-type",
    default="",
    metavar="NAME",
    help="The task, replica type or replicated job, where a job has several.",
)
@with_session
def scale(session: Session, words: tuple[str, ...], replicas: int, task: str) -> None:
    """Set how many replicas a job's task or a workload has.

    \b
    Examples:
      tidegate scale job/ring --task worker --replicas 8
      tidegate scale pytorchjob/mnist --replica-type Worker --replicas 4
      tidegate scale trainjob/bert --replicas 2
      tidegate scale deployment/web --replicas 3
    """
    with session.client() as client:
        _each(
            words,
            lambda kind, name: client.scale(kind.id, name, replicas, task=task, namespace=session.namespace),
        )


def _each(words: tuple[str, ...], action: Callable[[KindInfo, str], str]) -> None:
    """Do it with every object, also after one of them was refused."""
    from tidegate.client import Denied, NotFound, Refused

    problems = 0
    for kind, name in named_objects(words):
        try:
            say(action(kind, name))
        except (NotFound, Refused, Denied) as error:
            complain(str(error))
            problems += 1
    if problems:
        raise failed()
