"""Which Secret a service may have the values of: one that a trigger's authentication names."""

from kube import Key, Object

CLUSTER_NAMESPACE = "keda"
"""Where the Secrets are of authentications that are of no namespace."""
_KINDS = ("TriggerAuthentication.keda.sh", "ClusterTriggerAuthentication.keda.sh")


def named_secret(item: Object | None, name: str) -> Key | None:
    """The key of the Secret ``name`` if the authentication ``item`` names it."""
    if item is None or item.kind not in _KINDS:
        return None
    if all(reference.get("name") != name for reference in item.spec.get("secretTargetRef") or ()):
        return None
    return Key("Secret", item.namespace or CLUSTER_NAMESPACE, name)
