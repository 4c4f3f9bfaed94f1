"""Tolerations of taints, as Kubernetes reads them."""

from kube import Manifest


def tolerates(item: Manifest, taint: Manifest) -> bool:
    """Whether the toleration ``item`` bears the taint."""
    if item.get("effect") and item["effect"] != taint.get("effect"):
        return False
    if item.get("operator") == "Exists":
        return not item.get("key") or item["key"] == taint.get("key")
    return item.get("key") == taint.get("key") and str(item.get("value") or "") == str(taint.get("value") or "")
