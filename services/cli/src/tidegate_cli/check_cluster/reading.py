"""Reading a cluster through its API server, page by page. Nothing is written."""

from pathlib import Path

from apiserver import Api, Refused, load
from cluster_gateway.kubernetes.discovery import Served, discover
from kube import KINDS, Manifest, from_manifest
from tidegate_cli.check_cluster.cluster import Cluster

PAGE = "500"
_NOT_READ = frozenset(
    {"Secret", "Event", "Event.events.k8s.io", "Lease.coordination.k8s.io", "NodeMetric.slo.koordinator.sh"}
)
"""Secrets are nobody's business here, and the others say nothing of what would change."""
_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


async def read(kubeconfig: Path | None, context: str) -> Cluster:
    """The cluster of ``kubeconfig``, or of the pod in which this runs where that is None.

    Raises NoAccess, Unreachable, Refused where not even the list of kinds may be read.
    """
    cluster = Cluster()
    async with Api(await load(kubeconfig, context)) as api:
        for kind, served in (await discover(api, frozenset(KINDS) - _NOT_READ)).items():
            try:
                await _list(api, kind, served, cluster)
            except Refused as refused:
                cluster.unread[kind] = str(refused)
        for kind in _WEBHOOKS:
            answer = await api.get(f"{_REGISTRATIONS}/{kind.lower()}s")
            cluster.webhooks += [{**item, "kind": kind} for item in answer.body.get("items") or ()]
    return cluster


async def _list(api: Api, kind: str, served: Served, cluster: Cluster) -> None:
    group = served.prefix.removeprefix("/apis/").removeprefix("/api/")
    parameters = {"limit": PAGE}
    while True:
        answer = await api.get(served.collection, parameters)
        if not answer.ok:
            raise Refused(answer)
        for item in answer.body.get("items") or ():
            manifest: Manifest = {"apiVersion": group, "kind": KINDS[kind].kind, **item}
            cluster.store.put(from_manifest(manifest, uid=str(item["metadata"].get("uid") or "")))
        following = (answer.body.get("metadata") or {}).get("continue")
        if not following:
            return
        parameters = {"limit": PAGE, "continue": str(following)}
