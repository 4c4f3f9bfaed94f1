"""The status of a ResourceClaim: what is allocated to it, and for whom; and what is left of it when pods have ended."""

from collections.abc import Callable, Sequence
from uuid import NAMESPACE_OID, uuid5

from gang_scheduler.domain.dra.allocator import Chosen
from gang_scheduler.domain.dra.capacity import told
from gang_scheduler.domain.dra.requests import users_of
from kube import Manifest, Object


def allocation_of(claim: Object, chosen: Sequence[Chosen], node: str) -> Manifest:
    """The allocation of ``chosen`` devices to a claim whose pod goes to ``node``."""
    results: list[Manifest] = []
    for one in chosen:
        result: Manifest = {
            "request": one.ask.name,
            "driver": one.device.id.driver,
            "pool": one.device.id.pool,
            "device": one.device.id.name,
        }
        if one.ask.admin:
            result["adminAccess"] = True
        elif one.device.shareable:
            taken = one.device.taken_by(one.ask.capacity) or {}
            result["shareID"] = str(uuid5(NAMESPACE_OID, f"{claim.uid}/{len(results)}"))
            result["consumedCapacity"] = {one.device.capacities[name].name: told(part) for name, part in taken.items()}
        if one.ask.told:
            result["tolerations"] = list(one.ask.told)
        results.append(result)
    devices: Manifest = {"results": results}
    config = [
        {"source": "FromClaim", **entry} for entry in (claim.spec.get("devices") or {}).get("config") or () if entry
    ]
    if config:
        devices["config"] = config
    allocation: Manifest = {"devices": devices}
    if any(one.device.node or one.device.binds for one in chosen):
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return allocation


def without_ended(claim: Object, runs: Callable[[Manifest], bool]) -> Manifest | None:
    """How the status changes as pods have ended; None when all for whom the claim is reserved are there."""
    users = users_of(claim)
    kept = [user for user in users if user.get("resource") != "pods" or runs(user)]
    if users and len(kept) == len(users):
        return None
    if not users and not claim.status.get("allocation"):
        return None
    return {"reservedFor": kept} if kept else {"reservedFor": None, "allocation": None}
