"""``tidegate explain``: why something waits, or where it went."""

import json
from typing import TYPE_CHECKING

import click

from kube import KINDS, Key
from tidegate_cli import options
from tidegate_cli.failures import Failure
from tidegate_cli.object_words import key_in, one_object
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import Explanation, SyncClient

_GUESSES = (
    "Job.batch.volcano.sh",
    "PyTorchJob.kubeflow.org",
    "TFJob.kubeflow.org",
    "MPIJob.kubeflow.org",
    "TrainJob.trainer.kubeflow.org",
    "JobSet.jobset.x-k8s.io",
    "Job.batch",
    "PodGroup.scheduling.volcano.sh",
    "Pod",
)
"""What a bare name may mean, first one first."""


@click.command()
@options.words
@click.option(
    "--output",
    "-o",
    default="text",
    type=click.Choice(("text", "json", "yaml")),
    help="In words, or all of it as data.",
)
@with_session
def explain(session: Session, words: tuple[str, ...], output: str) -> None:
    """Say why a job or pod waits and what would help, or where it went and why there. Of workloads, queues, quotas and
    reservations it says how they stand, of a node how much of it is lent, and how it comes to that; of services and
    autoscalers why they have the size that they have, what starts, and what has to pass before it may shrink.

    A bare name is looked for among jobs, pod groups and pods, in this order.

    \b
    Examples:
      tidegate explain ring
      tidegate explain job/ring -n team
      tidegate explain pod/ring-worker-3 -o json
      tidegate explain node/n1                     what is lent of it
      tidegate explain inferenceservice/my-model   why it has so many replicas
      tidegate explain job.batch/sweep             a Job of Kubernetes, in a queue of Kueue or not
    """
    with session.client() as client:
        explanation = _explanation(client, words, session.namespace)
    if output == "json":
        say(json.dumps(explanation.details, indent=2, ensure_ascii=False))
    elif output == "yaml":
        import yaml

        say(yaml.safe_dump(explanation.details, sort_keys=False, allow_unicode=True, width=120).rstrip())
    else:
        say("\n".join(explanation.lines) or "Nothing is decided about it; `tidegate describe` tells what it is.")


def _explanation(client: "SyncClient", words: tuple[str, ...], namespace: str) -> "Explanation":
    from tidegate.client import NotFound

    keys = _keys(words, namespace)
    for key in keys:
        try:
            return client.explain(key.kind, key.name, key.namespace)
        except NotFound as error:
            last = error
    if len(keys) == 1:
        raise Failure(str(last))
    raise Failure(f"there is no job, pod group or pod {words[0]!r} in namespace {namespace}")


def _keys(words: tuple[str, ...], namespace: str) -> list[Key]:
    if len(words) == 1 and "/" not in words[0]:
        return [key_in(KINDS[kind], words[0], namespace) for kind in _GUESSES]
    kind, name = one_object(words)
    return [key_in(kind, name, namespace)]
