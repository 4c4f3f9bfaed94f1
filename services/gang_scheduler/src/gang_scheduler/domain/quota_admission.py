"""What the queue manager grants to a pod or group that is in a LocalQueue, and takes back: read from its annotations."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from gang_scheduler.domain.gang_terms import REVOKED
from gang_scheduler.domain.groups import Group
from gang_scheduler.domain.pod_record import PodRecord, Standing
from kube import Decision, Mutation, Verb


class Grant(NamedTuple):
    """The nodes that a grant is for, in the words of a pod spec."""

    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]

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
    return Grant(selector, tolerations) if selector or tolerations else None


def evicted(group: Group) -> Decision | None:
    """The eviction of the members whose quota was taken back; None where nobody runs any more, or nothing was taken."""
    whole = group.pod_group.annotations.get(REVOKED) if group.pod_group is not None else None
    victims = [record for _, record in sorted(group.members.items()) if _is_revoked(record, whole)]
    if not victims:
        return None
    content = _parsed(whole or victims[0].pod.annotations[REVOKED])
    reason, message = (
        str(content.get("reason") or "Preempted"),
        str(content.get("message") or "its quota was taken back"),
    )
    mutations = tuple(Mutation(Verb.EVICT, record.key, record.pod.uid) for record in victims)
    return Decision("WorkloadEvicted", group.key, group.uid, reason, message, mutations)


def _is_revoked(record: PodRecord, whole: str | None) -> bool:
    runs = record.standing in (Standing.BOUND, Standing.RUNNING) and not record.assumed
    return runs and bool(whole or record.pod.annotations.get(REVOKED))


def _parsed(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
