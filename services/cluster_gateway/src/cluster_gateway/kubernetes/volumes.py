"""Volumes for the claims of pods that are being bound, as kube-scheduler does it: first the claims, then the pods.

A claim that waits for its first consumer is told the node (``selected-node``), and whoever makes volumes makes one there; or a
volume that is there is kept for it (``claimRef``), and the cluster's own controller completes both. A pod is bound when its
claims are: once it has a node nobody can look for another one.
"""

import asyncio
from collections.abc import Sequence

from cluster_gateway.domain.mirror import Mirror
from kube import Mutation, Object, Verb
from kube.volumes import CLAIM, SELECTED_NODE

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Tells the controller of volumes that the claim was put there by a program, which gives it up with the claim."""

PATIENCE_SECONDS = 600.0
"""How long a claim may take, as kube-scheduler's ``bindTimeoutSeconds``."""
LOOK_SECONDS = 0.05


def volume_of(mutation: Mutation) -> str:
    """The volume that a claim is given by the change; empty for none."""
    if mutation.key.kind != CLAIM:
        return ""
    return str(((mutation.patch or {}).get("spec") or {}).get("volumeName") or "")


def given_to(volume: Object, claim: Object) -> Mutation:
    """Keeping the volume for the claim."""
    owner = {
        "apiVersion": "v1",
        "kind": CLAIM,
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
    }
    patch = {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}, "spec": {"claimRef": owner}}
    return Mutation(Verb.PATCH, volume.key, volume.uid, patch=patch)


async def until_bound(mirror: Mirror, mutations: Sequence[Mutation]) -> dict[str, str]:
    """Wait until all claims of ``mutations`` are bound; why not, by claim."""
    waiting = {mutation.key: mutation for mutation in mutations if mutation.key.kind == CLAIM}
    told: set[str] = set()
    until = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while waiting:
        late = asyncio.get_running_loop().time() > until
        for key, mutation in list(waiting.items()):
            claim = mirror.store.get(key)
            if claim is not None and claim.status.get("phase") == "Bound":
                del waiting[key]
            elif late:
                return {str(one): f"was not bound within {PATIENCE_SECONDS:g} s" for one in waiting}
            elif claim is None or (mutation.uid and claim.uid != mutation.uid):
                return {str(key): "is gone"}
            elif SELECTED_NODE in claim.annotations:
                told.add(str(key))
            elif str(key) in told:
                return {str(key): "no volume could be made for it on the node that was chosen"}
        if waiting:
            await asyncio.sleep(LOOK_SECONDS)
    return {}
