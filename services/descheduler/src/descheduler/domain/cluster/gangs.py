"""Pods that run together: a gang keeps its minimum."""

from dataclasses import dataclass

from descheduler.domain.cluster.pod_traits import POD, is_active, node_of, whole
from kube import Key, Object, Store
from kube.json_text import read_json
from kube.pods import is_finished

VOLCANO_GROUP = "PodGroup.scheduling.volcano.sh"
SIGS_GROUPS = ("PodGroup.scheduling.sigs.k8s.io", "PodGroup.scheduling.x-k8s.io")
GROUP_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
SIGS_LABELS = ("pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name")
KOORDINATOR_NAME = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_BUNDLE = "gang.scheduling.koordinator.sh/groups"
KOORDINATOR_MINIMUM = "gang.scheduling.koordinator.sh/min-available"


@dataclass(frozen=True, slots=True)
class Gang:
    """``minimum`` is how many of its pods have to be there."""

    namespace: str
    name: str
    minimum: int


@dataclass(frozen=True, slots=True)
class Gangs:
    """Asks the store."""

    store: Store

    def of(self, pod: Object) -> Gang | None:
        """The gang of a pod; None where it has none."""
        name = gang_name(pod)
        if not name:
            return None
        for kind in (VOLCANO_GROUP, *SIGS_GROUPS):
            group = self.store.get(Key(kind, pod.namespace, name))
            if group is not None:
                return Gang(pod.namespace, name, int(group.spec.get("minMember") or 1))
        return Gang(pod.namespace, name, whole(pod.annotations.get(KOORDINATOR_MINIMUM)))

    def bundle(self, pod: Object) -> tuple[str, ...]:
        """The gangs, as ``namespace/name``, that start together with that of ``pod``; empty where it starts by itself."""
        groups = [self.store.get(Key(kind, pod.namespace, gang_name(pod))) for kind in (VOLCANO_GROUP, *SIGS_GROUPS)]
        notes = [pod.annotations, *(group.annotations for group in groups if group is not None)]
        told = next((note[KOORDINATOR_BUNDLE] for note in notes if KOORDINATOR_BUNDLE in note), "")
        try:
            named = read_json(told) if told else []
        except ValueError:
            return ()
        listed = sorted({str(name) for name in named}) if isinstance(named, list) else []
        return tuple(name if "/" in name else f"{pod.namespace}/{name}" for name in listed)

    def members(self, gang: Gang) -> list[Object]:
        """Its pods, by key, those that failed or go left out."""
        found = (pod for pod in self.store.in_namespace(POD, gang.namespace) if gang_name(pod) == gang.name)
        return sorted((pod for pod in found if _counts(pod)), key=lambda pod: pod.key)

    def obstacle(self, pod: Object) -> str:
        """Why the gang of ``pod`` cannot spare it; empty where it can."""
        gang = self.of(pod)
        if gang is None or not gang.minimum:
            return ""
        there = sum(bool(node_of(member)) for member in self.members(gang))
        if there - is_active(pod) >= gang.minimum:
            return ""
        return f"its gang {gang.name} needs {gang.minimum} of its pods and has {there}"


def gang_name(pod: Object) -> str:
    """The name of a pod's gang; empty where it has none."""
    notes, labels = pod.annotations, pod.labels
    named = [
        *(notes.get(name) for name in (*GROUP_NAMES, KOORDINATOR_NAME)),
        *(labels.get(name) for name in SIGS_LABELS),
    ]
    return next((str(name) for name in named if name), "")


def _counts(pod: Object) -> bool:
    return is_active(pod) or (is_finished(pod) and pod.status.get("phase") == "Succeeded")
