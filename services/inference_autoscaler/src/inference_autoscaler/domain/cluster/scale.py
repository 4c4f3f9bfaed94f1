"""What can be scaled, and the size that is wanted of it: Kubernetes' scale subresource."""

from dataclasses import dataclass

from inference_autoscaler.domain.exact import REPLICAS_MAX
from kube import Manifest, Mutation, Object, Verb

SCALABLE = frozenset(["Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps"])


@dataclass(frozen=True, slots=True)
class Scale:
    """``wanted`` is the size in the spec, ``counted`` how many there are by the status."""

    item: Object
    wanted: int
    counted: int

    @property
    def selector(self) -> Manifest | None:
        return self.item.spec.get("selector")

    def to(self, replicas: int) -> Mutation:
        """The change that makes it ``replicas``."""
        wanted = min(max(replicas, 0), REPLICAS_MAX)
        return Mutation(Verb.PATCH, self.item.key, self.item.uid, patch={"spec": {"replicas": wanted}})


def scale_of(item: Object | None) -> Scale | None:
    """The scale of ``item``; None where it is not there or has no size."""
    if item is None or item.kind not in SCALABLE:
        return None
    wanted = item.spec.get("replicas")
    return Scale(item, 1 if wanted is None else int(wanted), int(item.status.get("replicas") or 0))
