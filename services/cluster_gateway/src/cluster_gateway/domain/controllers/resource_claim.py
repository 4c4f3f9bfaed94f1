"""ResourceClaims that are made for a pod from a template, and go when the pod has ended."""

from cluster_gateway.domain.claim_use import CLAIM, is_used
from cluster_gateway.domain.controllers.work import Work, controls
from kube import Key, Manifest, Object
from kube.owners import owner_reference
from kube.pods import is_finished

POD = "Pod"
TEMPLATE = "ResourceClaimTemplate.resource.k8s.io"


def from_template(pod: Object) -> list[tuple[str, str]]:
    """The claims of a pod that are made for it: the pod's own name for each, and the template."""
    listed = pod.spec.get("resourceClaims") or ()
    return [
        (str(one.get("name")), str(one["resourceClaimTemplateName"]))
        for one in listed
        if one.get("resourceClaimTemplateName")
    ]


def reconcile_claims(pod: Object, work: Work) -> None:
    """Make what is missing of a pod's claims and tell the pod their names."""
    owned = {item.name: item for item in work.store.owned_by(pod.uid) if item.kind == CLAIM and controls(pod, item)}
    if is_finished(pod):
        for item in owned.values():
            work.delete(item)
        return
    if pod.deleting:
        return
    known = {str(one.get("name")): one for one in pod.status.get("resourceClaimStatuses") or ()}
    for name, template_name in from_template(pod):
        if name in known:
            continue
        template = work.store.get(Key(TEMPLATE, pod.namespace, template_name))
        if template is None:
            continue
        made = next((item for item in owned.values() if item.annotations.get(_FOR) == name), None)
        if made is None:
            manifest = _claim(pod, name, template, work.names.fresh(CLAIM, pod, f"{pod.name}-{name}", work.now))
            work.create(manifest)
            known[name] = {"name": name, "resourceClaimName": manifest["metadata"]["name"]}
        else:
            known[name] = {"name": name, "resourceClaimName": made.name}
    if known:
        work.status(pod, {"resourceClaimStatuses": [known[name] for name in sorted(known)]})


def reconcile_used_claim(claim: Object, work: Work) -> None:
    """A claim that was deleted while pods used it goes when none does any more."""
    if claim.deleting and not is_used(claim, work.store):
        work.end(claim)


_FOR = "resource.kubernetes.io/pod-claim-name"


def _claim(pod: Object, name: str, template: Object, claim_name: str) -> Manifest:
    metadata = template.spec.get("metadata") or {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim_name,
            "namespace": pod.namespace,
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), _FOR: name},
            "ownerReferences": [owner_reference(pod)],
        },
        "spec": template.spec.get("spec") or {},
    }
