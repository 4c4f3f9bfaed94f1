"""``tidegate logs``: what containers wrote."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from kube import Manifest, parse_duration, parse_time
from tidegate_cli import options
from tidegate_cli.failures import Failure, complain, failed
from tidegate_cli.log_streams import merged
from tidegate_cli.object_words import check_selectors, one_object
from tidegate_cli.ownership import pods_of
from tidegate_cli.session import Session, with_session
from tidegate_cli.shell_words import complete_objects
from tidegate_cli.terminal import is_terminal, say_pieces

if TYPE_CHECKING:
    from tidegate.client import SyncClient

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_cyan", "bright_yellow", "bright_green")


@dataclass(frozen=True, slots=True)
class Wish:
    """What to read of each pod. ``tail`` 0 is all; ``since_ms`` is in milliseconds since the epoch."""

    container: str
    all_containers: bool
    follow: bool
    tail: int
    previous: bool
    since_ms: int
    timestamps: bool


@click.command()
@click.argument("words", nargs=-1, metavar="POD | KIND/NAME", shell_complete=complete_objects)
@options.selector
@click.option("--container", "-c", default="", metavar="NAME", help="Which container; the first one if left out.")
@click.option("--all-containers", is_flag=True, help="All containers of each pod.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the containers have ended.")
@click.option("--tail", default=-1, type=click.IntRange(-1), metavar="LINES", help="Only so many lines from the end.")
@click.option("--previous", "-p", is_flag=True, help="What was written before the container was started again.")
@click.option("--since", default="", metavar="DURATION", help="Only what was written of late, such as 30s or 1h30m.")
@click.option(
    "--since-time", default="", metavar="TIME", help="Only what was written from then on: 2026-01-31T12:00:00Z."
)
@click.option("--timestamps", is_flag=True, help="Each line behind the time when it was written.")
@with_session
def logs(
    session: Session,
    words: tuple[str, ...],
    selector: str,
    container: str,
    all_containers: bool,
    follow: bool,
    tail: int,
    previous: bool,
    since: str,
    since_time: str,
    timestamps: bool,
) -> None:
    """Print what the containers of a pod wrote, or of all pods of a job, each line behind the name of its pod.

    \b
    Examples:
      tidegate logs ring-worker-0
      tidegate logs job/ring -f                    all its pods, until they have ended
      tidegate logs -l app=web --tail 20
      tidegate logs web-7d4f -c proxy
      tidegate logs web-7d4f -p                    why it ended the last time
      tidegate logs job/ring --since 5m --timestamps
    """
    if bool(words) == bool(selector):
        raise click.UsageError("name a pod, or KIND/NAME such as job/ring, or give a selector with -l")
    if previous and follow:
        raise click.UsageError("what was written before does not go on: leave out -f or -p")
    check_selectors(selector)
    now = time.time_ns() // 1_000_000
    begin = _begin(since, since_time, now)
    if tail == 0 and not follow:
        return
    # No line of those that are there, but of those to come: from now on.
    begin = max(begin, now) if tail == 0 else begin
    wish = Wish(container, all_containers, follow, max(tail, 0), previous, begin, timestamps)
    with session.client() as client:
        pods = _pods(client, session, words, selector)
        sources = _sources(client, pods, wish)
        if len(sources) == 1 and _names_a_pod(words):
            say_pieces(next(iter(sources.values()))())
            return
        _print_all(sources)


def _begin(since: str, since_time: str, now_ms: int) -> int:
    """The time of the oldest line that is wanted, in milliseconds since the epoch; 0 for all lines."""
    if since and since_time:
        raise click.UsageError("--since and --since-time say the same: leave out one of them")
    try:
        if since:
            return max(1, now_ms - parse_duration(since))
        return max(1, parse_time(since_time)) if since_time else 0
    except ValueError as error:
        raise click.UsageError(f"--since{'' if since else '-time'}: {error}") from None


def _names_a_pod(words: tuple[str, ...]) -> bool:
    """Whether a pod was meant, and not what it belongs to: then its lines are printed as they are."""
    return (len(words) == 1 and "/" not in words[0]) or (bool(words) and one_object(words)[0].kind == "Pod")


def _pods(client: "SyncClient", session: Session, words: tuple[str, ...], selector: str) -> list[Manifest]:
    if selector:
        pods = client.list("Pod", session.namespace, label_selector=selector)
    elif len(words) == 1 and "/" not in words[0]:
        return [client.get("Pod", words[0], session.namespace)]
    else:
        kind, name = one_object(words)
        pods = pods_of(client, client.get(kind.id, name, session.namespace if kind.namespaced else ""))
    if not pods:
        what = f"with labels {selector}" if selector else f"of {'/'.join(words)}"
        raise Failure(f"there are no pods {what} in namespace {session.namespace}, so nothing was written")
    return pods


def _sources(client: "SyncClient", pods: list[Manifest], wish: Wish) -> dict[str, Callable[[], Iterator[bytes]]]:
    """How to read each container, by what stands before its lines."""
    sources: dict[str, Callable[[], Iterator[bytes]]] = {}
    for pod in pods:
        metadata, containers = pod["metadata"], _containers(pod, wish)
        for container in containers:
            label = f"{metadata['name']}/{container}" if len(containers) > 1 else str(metadata["name"])
            sources[f"[{label}] "] = partial(
                client.logs,
                metadata["name"],
                metadata.get("namespace", ""),
                container=container,
                follow=wish.follow,
                tail=wish.tail,
                previous=wish.previous,
                since_ms=wish.since_ms,
                timestamps=wish.timestamps,
            )
    return sources


def _containers(pod: Manifest, wish: Wish) -> list[str]:
    spec = pod.get("spec") or {}
    if wish.all_containers:
        return [str(one["name"]) for part in ("initContainers", "containers") for one in spec.get(part) or ()]
    names = [str(one["name"]) for one in spec.get("containers") or ()]
    if not wish.container and len(names) > 1:
        others = ", ".join(names[1:])
        click.echo(f"{pod['metadata']['name']}: this is container {names[0]}; others: {others} (-c NAME)", err=True)
    return [wish.container or (names[0] if names else "")]


def _print_all(sources: dict[str, Callable[[], Iterator[bytes]]]) -> None:
    """All of them at once; one that cannot be read is told of, and the others go on."""
    if is_terminal():
        sources = {
            click.style(prefix, fg=_COLOURS[number % len(_COLOURS)]): source
            for number, (prefix, source) in enumerate(sources.items())
        }
    errors: list[Exception] = []
    say_pieces(merged(sources, errors.append))
    for sentence in dict.fromkeys(map(str, errors)):
        complain(sentence)
    if len(errors) == len(sources):
        raise failed()
