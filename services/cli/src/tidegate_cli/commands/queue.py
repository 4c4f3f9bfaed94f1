"""``tidegate queue``: how queues stand, and who waits in them."""

import time

import click

from tidegate_cli.failures import Failure
from tidegate_cli.queue_board import cluster_queue_lines, tree_lines, waiting_lines
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say

_QUEUE, _CLUSTER_QUEUE = "Queue.scheduling.volcano.sh", "ClusterQueue.kueue.x-k8s.io"


@click.command()
@click.argument("name", default="")
@with_session
def queue(session: Session, name: str) -> None:
    """Show the tree of queues with what each holds, or how one queue stands and who waits in it, with the reason.

    \b
    Examples:
      tidegate queue
      tidegate queue research
    """
    say("\n".join(_one(session, name) if name else _all(session)))


def _all(session: Session) -> list[str]:
    with session.client() as client:
        queues, cluster_queues = client.list(_QUEUE), client.list(_CLUSTER_QUEUE)
    return [*tree_lines(queues), *(["", *cluster_queue_lines(cluster_queues)] if cluster_queues else [])]


def _one(session: Session, name: str) -> list[str]:
    from tidegate.client import NotFound

    with session.client() as client:
        for kind in (_QUEUE, _CLUSTER_QUEUE):
            try:
                lines = list(client.explain(kind, name, "").lines)
            except NotFound:
                continue
            groups = client.list("PodGroup.scheduling.volcano.sh") if kind == _QUEUE else []
            waiting = waiting_lines(groups, name, int(time.time() * 1000))
            return [*(lines or [f"{name}: nothing is decided about it"]), *(["", *waiting] if waiting else [])]
    raise Failure(f"there is no queue {name!r}; `tidegate queue` lists them")
