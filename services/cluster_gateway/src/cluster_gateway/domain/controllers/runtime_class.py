"""Pods that came before their RuntimeClass: they get what it adds while they have no node."""

from cluster_gateway.domain.controllers.work import Work
from kube import Object
from kube.runtime_classes import completed


def reconcile_runtime_class(pod: Object, work: Work) -> None:
    """Fill in what is missing of a pod that names a class; those that contradict it wait, as the scheduler tells them."""
    if pod.spec.get("nodeName"):
        return
    complete = completed(pod.spec, work.store.get)
    added = {field: part for field, part in complete.items() if pod.spec.get(field) is not part}
    if added:
        work.patch(pod, {"spec": added})
