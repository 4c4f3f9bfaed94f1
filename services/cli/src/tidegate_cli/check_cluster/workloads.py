"""Jobs and pods whose way through the cluster would change."""

from collections import Counter
from collections.abc import Iterable

from kube import KINDS
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level

_KUBEFLOW = tuple(kind for kind, info in KINDS.items() if info.group == "kubeflow.org")
_ENDED = ("Succeeded", "Failed")


def workloads(cluster: Cluster, scheduler_names: frozenset[str]) -> Iterable[Finding]:
    """What of the jobs and pods that are there now would be otherwise with ``scheduler_names`` placed by Tidegate."""
    yield from _pods(cluster, scheduler_names)
    for kind in _KUBEFLOW:
        loose = [str(job.key) for job in cluster.objects(kind) if not _is_gang(job.spec)]
        if loose:
            text = "start pod by pod now where no scheduling policy is given; here each is a gang that starts whole"
            subject = loose[0] if len(loose) == 1 else f"{len(loose)} objects of {KINDS[kind].kind}.{KINDS[kind].group}"
            advice = "runPolicy.schedulingPolicy.minAvailable: 1 lets it start with what there is"
            yield Finding(Level.DIFFERS, subject, text, advice, tuple(sorted(loose)))


def _pods(cluster: Cluster, scheduler_names: frozenset[str]) -> Iterable[Finding]:
    waiting: Counter[str] = Counter()
    for pod in cluster.objects("Pod"):
        if not pod.spec.get("nodeName") and (pod.body.get("status") or {}).get("phase") not in _ENDED:
            waiting[str(pod.spec.get("schedulerName") or "default-scheduler")] += 1
    for name, number in sorted(waiting.items()):
        who = (
            "Tidegate places them as soon as it starts" if name in scheduler_names else "they go on waiting for theirs"
        )
        yield Finding(Level.NOTE, f"pods of schedulerName {name}", f"{number} wait for a node now; {who}")


def _is_gang(spec: dict[str, object]) -> bool:
    policy = spec.get("runPolicy")
    return isinstance(policy, dict) and bool((policy.get("schedulingPolicy") or {}).get("minAvailable"))
