"""Each object of a cluster, read by the rules by which Tidegate would admit it."""

from collections.abc import Iterable

from admission.domain.admit import admit
from admission.domain.definitions import DEFINED, UNRULED
from admission.domain.errors import Rejected
from kube import KINDS, Object
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level


def objects(cluster: Cluster) -> Iterable[Finding]:
    """What would be refused, and which fields would be taken without an effect; the same of many objects is said once."""
    said: dict[tuple[Level, str, str], list[str]] = {}
    for kind in DEFINED:
        if kind in UNRULED:
            continue
        for item in cluster.objects(kind):
            for level, text in _review(cluster, item):
                said.setdefault((level, kind, text), []).append(str(item.key))
    for (level, kind, text), names in said.items():
        subject = names[0] if len(names) == 1 else f"{len(names)} objects of {KINDS[kind].kind}.{KINDS[kind].group}"
        yield Finding(level, subject, text, objects=tuple(sorted(names)))
    for kind, why in sorted(cluster.unread.items()):
        yield Finding(Level.NOTE, kind, f"could not be read: {why}", "ask with a kubeconfig that may list it")


def _review(cluster: Cluster, item: Object) -> Iterable[tuple[Level, str]]:
    try:
        admitted = admit(item.manifest(), item, cluster.store)
    except Rejected as rejected:
        for error in rejected.errors:
            yield Level.CONFLICT, f"would be refused: {error}"
        return
    for warning in admitted.warnings:
        yield Level.NOTE, warning
