"""What the queue manager grants to a pod or group that is in a LocalQueue, and takes back: read from its annotations."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord, Standing
from gang_scheduler.domain.queues.queue_limits import Denial
from gang_scheduler.domain.terms.gang_terms import ADMISSION, REVOKED
from kube import Decision, Mutation, Verb
from kube.json_text import read_json
from resources.amounts import format_amount


class Grant(NamedTuple):
    """The nodes that a grant is for, in the words of a pod spec."""

    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]
    levels: tuple[str, ...] = ()
    """The labels that make the topology of these nodes, the widest first; empty where it does not matter."""

    def laid_over(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The spec of a pod that keeps to the grant; what the pod itself selects stays."""
        return {
            **spec,
            "nodeSelector": {**(spec.get("nodeSelector") or {}), **self.node_selector},
            "tolerations": [*(spec.get("tolerations") or ()), *self.tolerations],
        }


@lru_cache(maxsize=4096)
def grant_of(text: str) -> Grant | None:
    """The grant that an annotation states; None where it binds the pod to no particular nodes."""
    content = _parsed(text)
    selector, tolerations = content.get("nodeSelector") or {}, tuple(content.get("tolerations") or ())
    levels = tuple(str(level) for level in content.get("topology") or ())
    return Grant(selector, tolerations, levels) if selector or tolerations or levels else None


@lru_cache(maxsize=4096)
def _amounts_of(text: str) -> Mapping[str, int]:
    amounts = _parsed(text).get("usage")
    return {str(name): int(amount) for name, amount in amounts.items()} if isinstance(amounts, dict) else {}


def beyond_grant(group: Group, records: Sequence[PodRecord]) -> Denial | None:
    """Why a group that runs may not start ``records``, too: it has no quota for them yet."""
    text = group.pod_group.annotations.get(ADMISSION) if group.pod_group is not None else None
    if not text:
        return None
    placed = [record for record in group.members.values() if record.slot >= 0]
    for name, amount in _amounts_of(text).items():
        used = sum(record.shape.requests.get(name, 0) for record in placed)
        need = sum(record.shape.requests.get(name, 0) for record in records)
        if need and used + need > amount:
            have, asked = format_amount(name, amount), format_amount(name, need)
            message = (
                f"{group.name} has quota for {name} {have}, uses {format_amount(name, used)} and needs {asked} more"
            )
            return Denial(group.queue, "WaitingForQuota", message)
    return None


def evicted(group: Group) -> Decision | None:
    """The eviction of the members whose quota was taken back; None where nobody runs any more, or nothing was taken."""
    if not (group.counts[Standing.BOUND] or group.counts[Standing.RUNNING]):
        return None
    whole = group.pod_group.annotations.get(REVOKED) if group.pod_group is not None else None
    members = group.members.values()
    victims = [record for record in members if (whole or record.pod.annotations.get(REVOKED)) and _runs(record)]
    if not victims:
        return None
    victims.sort(key=lambda record: record.key)
    content = _parsed(whole or victims[0].pod.annotations[REVOKED])
    reason, message = (
        str(content.get("reason") or "Preempted"),
        str(content.get("message") or "its quota was taken back"),
    )
    mutations = tuple(Mutation(Verb.EVICT, record.key, record.pod.uid) for record in victims)
    return Decision("WorkloadEvicted", group.key, group.uid, reason, message, mutations)


def _runs(record: PodRecord) -> bool:
    return record.standing in (Standing.BOUND, Standing.RUNNING) and not record.assumed


def _parsed(text: str) -> dict[str, Any]:
    try:
        content = read_json(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
