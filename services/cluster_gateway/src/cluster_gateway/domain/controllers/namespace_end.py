"""A namespace that is being deleted: all that is in it goes first, then it does."""

from cluster_gateway.domain.controllers.work import Work
from kube import Mutation, Object, Verb

NAMESPACE = "Namespace"


def reconcile_namespace(item: Object, work: Work) -> None:
    """Delete what is left in a namespace that is being deleted, and the namespace when nothing is."""
    if not item.deleting:
        return
    inside = sorted(
        (found for found in work.store.objects.values() if found.namespace == item.name), key=lambda f: f.key
    )
    for found in inside:
        work.delete(found)
    if not inside:
        work.mutations.append(Mutation(Verb.DELETE, item.key, item.uid))
        return
    work.status(item, {"phase": "Terminating"})
