"""What Kueue's own configuration says, and how the same is had here."""

from collections.abc import Iterable

import orjson

from kube import Manifest
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level

_FRAMEWORKS = frozenset(
    {
        "batch/job",
        "kubeflow.org/mpijob",
        "kubeflow.org/pytorchjob",
        "kubeflow.org/tfjob",
        "kubeflow.org/xgboostjob",
        "kubeflow.org/paddlejob",
        "kubeflow.org/jaxjob",
        "jobset.x-k8s.io/jobset",
        "trainer.kubeflow.org/trainjob",
        "pod",
    }
)
"""The kinds of jobs that queue here as in Kueue, by their names in its configuration."""


def kueue(cluster: Cluster) -> Iterable[Finding]:
    """Findings about every Configuration of ``config.kueue.x-k8s.io``."""
    for config_map in cluster.objects("ConfigMap"):
        for _, content in cluster.configuration(config_map):
            if str(content.get("apiVersion") or "").startswith("config.kueue.x-k8s.io/"):
                yield from _configuration(f"ConfigMap {config_map.namespace}/{config_map.name}", content)


def _configuration(subject: str, content: Manifest) -> Iterable[Finding]:
    sharing = content.get("fairSharing")
    # Given means on; only the older version of the configuration can say it and switch it off.
    if isinstance(sharing, dict) and sharing.get("enable", True):
        yield Finding(Level.DIFFERS, subject, "fair sharing is off here", "--set queue_manager.fair_sharing=true")
    kept = {name: content[name] for name in ("waitForPodsReady", "admissionFairSharing") if content.get(name)}
    if kept:
        text = f"{' and '.join(kept)} must be told to queue_manager, too"
        yield Finding(Level.DIFFERS, subject, text, f"--set queue_manager.kueue='{orjson.dumps(kept).decode()}'")
    if content.get("manageJobsWithoutQueueName"):
        text = "manageJobsWithoutQueueName: a job without a queue's name is not held back here"
        yield Finding(Level.DIFFERS, subject, text, "give such jobs the label kueue.x-k8s.io/queue-name")
    if content.get("multiKueue"):
        yield Finding(Level.DIFFERS, subject, "multiKueue: there is one cluster here; nothing is sent to others")
    for framework in (content.get("integrations") or {}).get("frameworks") or ():
        if framework not in _FRAMEWORKS:
            yield Finding(
                Level.DIFFERS, subject, f"integration {framework}: objects of this kind are not held back here"
            )
