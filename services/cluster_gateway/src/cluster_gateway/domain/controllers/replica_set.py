"""ReplicaSet: as many pods of one template as asked for."""

from cluster_gateway.domain.controllers.made_pods import available_count, is_active, least_missed, pod_manifest
from cluster_gateway.domain.controllers.templates import POD_TEMPLATE_HASH, template_hash
from cluster_gateway.domain.controllers.work import Work, controls, whole
from kube import Key, Object
from kube.owners import owner_reference
from kube.pods import is_finished, is_ready
from kube.selectors import matches

REPLICA_SET = "ReplicaSet.apps"
DEPLOYMENT = "Deployment.apps"


def reconcile_replica_set(item: Object, work: Work) -> None:
    """Make or give up pods; one that failed or is being deleted does not count and is replaced at once."""
    if item.deleting:
        return
    adopted = _adopted(item, work)
    owned = [*work.pods_of(item), *adopted]
    pods = [pod for pod in owned if is_active(pod)]
    wanted = whole(item.spec.get("replicas"), 1)
    template = item.spec.get("template") or {}
    for _ in range(wanted - len(pods)):
        work.create(pod_manifest(item, template, work.names.fresh("Pod", item, item.name, work.now)))
    for pod in least_missed(pods, max(0, len(pods) - wanted)):
        work.delete(pod)
    work.status(
        item,
        {
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": sum(map(is_ready, pods)),
            "terminatingReplicas": sum(pod.deleting and not is_finished(pod) for pod in owned),
            "availableReplicas": available_count(pods, whole(item.spec.get("minReadySeconds"), 0), work),
            "observedGeneration": whole(item.metadata.get("generation"), 1),
        },
    )


def _adopted(item: Object, work: Work) -> list[Object]:
    """Pods that say they are the Deployment's own become those of its newest ReplicaSet, so that an update reaches them."""
    controller = item.controller or {}
    owner = work.store.get(Key(DEPLOYMENT, item.namespace, str(controller.get("name") or "")))
    if owner is None or not controls(owner, item):
        return []
    hashed = template_hash(owner.spec.get("template") or {})
    if item.labels.get(POD_TEMPLATE_HASH) != hashed:
        return []
    pods = [pod for pod in work.pods_of(owner) if matches(owner.spec.get("selector"), pod.labels)]
    for pod in pods:
        labels = {POD_TEMPLATE_HASH: hashed}
        work.patch(pod, {"metadata": {"labels": labels, "ownerReferences": [owner_reference(item)]}})
    return pods
