"""Who uses a ResourceClaim: one that is deleted stays, and keeps its devices, until the last of its pods has ended."""

from kube import Key, Object, Store
from kube.pods import is_finished

CLAIM = "ResourceClaim.resource.k8s.io"


def is_used(claim: Object, store: Store) -> bool:
    """Whether a pod for which the claim is reserved has not ended."""
    users = [user for user in claim.status.get("reservedFor") or () if user.get("resource") == "pods"]
    found = [(user, store.get(Key("Pod", claim.namespace, str(user.get("name"))))) for user in users]
    return any(pod is not None and pod.uid == user.get("uid") and not is_finished(pod) for user, pod in found)
