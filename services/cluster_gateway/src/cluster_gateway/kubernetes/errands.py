"""Each mutation of a decision as requests to an API server, and what they made of the objects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from apiserver.api import Answer
from cluster_gateway.domain.carrying_out import owner_uid
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.kubernetes import requests
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.kubernetes.patches import is_scaling, needs_version, patch_request, present, present_in
from cluster_gateway.kubernetes.sender import CONFLICT, TOO_MANY, Sender
from cluster_gateway.kubernetes.volumes import given_to, volume_of
from kube import Decision, Key, Mutation, Object, Verb, rfc3339
from kube.devices import annotations_of
from kube.volumes import VOLUME, is_free

NOT_FOUND = 404
DEVICES = "ResourceClaim.resource.k8s.io"
PROTECTION = "resource.kubernetes.io/delete-protection"
"""What keeps a claim of devices while they are allocated to it: kube-scheduler and the claims' controller set and look for it."""

Effect = Callable[[Mirror], None]


@dataclass(slots=True)
class Work:
    """One decision on its way: what it made of the objects so far, and what could not be done, by object."""

    service: str
    decision: Decision
    effects: list[Effect] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Errands:
    """Runs them. Each returns why it cannot be done, empty where it is. ``served`` are the kinds that the cluster has, now."""

    sender: Sender
    mirror: Mirror
    served: Mapping[str, Served]

    async def run(self, work: Work, mutation: Mutation) -> str:
        """Carry out one mutation."""
        try:
            return await _CARRY[mutation.verb](self, work, mutation)
        except requests.NotServed as error:
            return str(error)

    async def _create(self, work: Work, mutation: Mutation) -> str:
        answer = await self.sender.send(requests.creation(mutation, self.served, work.service))
        if answer.code == CONFLICT and answer.reason == "AlreadyExists":
            answer = await self.sender.send(requests.reading(mutation.key, self.served))
            if answer.ok and owner_uid(answer.body["metadata"]) != owner_uid(
                (mutation.manifest or {}).get("metadata") or {}
            ):
                return "is there already and belongs to somebody else"
            if answer.ok and answer.body["metadata"].get("deletionTimestamp"):
                return "is still being deleted"
        return self._took(work, mutation, answer)

    async def _change(self, work: Work, mutation: Mutation) -> str:
        """A patch of more than the status. A volume is given to a claim as kube-scheduler does it: by naming the claim there."""
        volume = volume_of(mutation)
        if not volume:
            return await self._patch(work, mutation)
        there = self.mirror.store.get(Key(VOLUME, "", volume))
        claim = self._there(mutation)
        if claim is None:
            return "is gone"
        if there is None or not is_free(there, claim):
            return f"volume {volume} is {'gone' if there is None else 'taken'}"
        complaint = await self._patch(work, given_to(there, claim))
        return f"volume {volume} {complaint}" if complaint else ""

    async def _status(self, work: Work, mutation: Mutation) -> str:
        """A patch of the status. A claim of devices cannot be deleted as long as it has any."""
        patch = mutation.patch or {}
        if mutation.key.kind != DEVICES or "allocation" not in patch:
            return await self._patch(work, mutation)
        if patch["allocation"]:
            return await self._hold(work, mutation, True) or await self._patch(work, mutation)
        return await self._patch(work, mutation) or await self._hold(work, mutation, False)

    async def _hold(self, work: Work, mutation: Mutation, protected: bool) -> str:
        there = self._there(mutation)
        held_by = list(there.metadata.get("finalizers") or ()) if there is not None else []
        if there is None or (PROTECTION in held_by) is protected:
            return ""
        held_by = [*held_by, PROTECTION] if protected else [one for one in held_by if one != PROTECTION]
        patch = {"metadata": {"finalizers": held_by}}
        return await self._patch(work, Mutation(Verb.PATCH, mutation.key, there.uid, patch=patch))

    async def _patch(self, work: Work, mutation: Mutation) -> str:
        there = self._there(mutation)
        if there is None:
            return "is gone"
        kind = requests.served_kind(self.served, mutation.key)
        has_version = needs_version(mutation, kind)
        seen = present(there, self.mirror)
        answer = Answer(CONFLICT, {})
        if seen.version or not has_version:
            answer = await self.sender.send(patch_request(mutation, seen, kind, work.service))
        while answer.code == CONFLICT and has_version:
            answer = await self.sender.send(requests.reading(mutation.key, self.served))
            if not answer.ok or answer.body["metadata"]["uid"] != there.uid:
                break
            if mutation.verb is Verb.PATCH and not self.mirror.is_known(mutation.key.kind, answer.body):
                self._took(work, mutation, answer)
                return "was changed by somebody meanwhile"
            seen = present_in(answer)
            answer = await self.sender.send(patch_request(mutation, seen, kind, work.service))
        if answer.ok and is_scaling(mutation, kind):
            answer = await self.sender.send(requests.reading(mutation.key, self.served))
        return self._took(work, mutation, answer)

    async def _delete(self, work: Work, mutation: Mutation) -> str:
        there = self._there(mutation)
        if there is None:
            return ""
        answer = await self.sender.send(requests.deletion(mutation, there, self.served))
        return await self._ended(work, mutation, there.uid, answer)

    async def _evict(self, work: Work, mutation: Mutation) -> str:
        there = self._there(mutation)
        if there is None or there.deleting:
            return ""
        answer = await self.sender.send(requests.eviction(mutation, there, self.served))
        if answer.code == TOO_MANY:
            return answer.message
        if answer.ok:
            told = Mutation(Verb.STATUS, mutation.key, there.uid, patch={"conditions": [self._evicted(work.decision)]})
            kind = requests.served_kind(self.served, mutation.key)
            await self.sender.send(patch_request(told, present(there, self.mirror), kind, work.service))
        return await self._ended(work, mutation, there.uid, answer)

    def _evicted(self, decision: Decision) -> dict[str, str]:
        return {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": decision.reason,
            "message": decision.message,
            "lastTransitionTime": rfc3339(self.mirror.cluster.now),
        }

    async def _ended(self, work: Work, mutation: Mutation, uid: str, answer: Answer) -> str:
        """What is being deleted is so in the facts when the outcome is: its decider would delete it again otherwise."""
        key = mutation.key
        if answer.ok:
            answer = await self.sender.send(requests.reading(key, self.served))
        if answer.code == NOT_FOUND or (answer.ok and answer.body["metadata"]["uid"] != uid):
            work.effects.append(lambda mirror: mirror.missing(key, uid))
            return ""
        if answer.code == CONFLICT and "uid" in answer.message.lower():
            return ""
        return self._took(work, mutation, answer)

    async def _bind(self, work: Work, mutation: Mutation) -> str:
        there = self._there(mutation)
        if there is None:
            return "is gone"
        if self.mirror.store.get(Key("Node", "", mutation.node)) is None:
            return f"node {mutation.node} is gone"
        key, uid, node, service = mutation.key, there.uid, mutation.node, work.service
        self.mirror.binding(uid, node)
        answer = await self.sender.send(requests.binding(mutation, there, self.served))
        if answer.code in (CONFLICT, NOT_FOUND):
            now = await self.sender.send(requests.reading(key, self.served))
            if now.code == NOT_FOUND or (now.ok and now.body["metadata"]["uid"] != uid):
                work.effects.append(lambda mirror: mirror.missing(key, uid))
                return "is gone"
            complaint = self._took(work, mutation, now)
            work.effects.append(lambda mirror: mirror.not_bound(uid))
            if complaint or now.body["spec"].get("nodeName") == node:
                return complaint
            return answer.message
        if not answer.ok:
            work.effects.append(lambda mirror: mirror.not_bound(uid))
            return answer.message
        annotations = annotations_of(mutation.devices) if mutation.devices else {}
        work.effects.append(lambda mirror: mirror.bound(key, uid, node, annotations, service))
        return ""

    def _there(self, mutation: Mutation) -> Object | None:
        """The object that is meant, as it was seen last."""
        there = self.mirror.store.get(mutation.key)
        return there if there is not None and mutation.uid in ("", there.uid) else None

    def _took(self, work: Work, mutation: Mutation, answer: Answer) -> str:
        """The object as the server has it now; or its reason why not."""
        key, uid, service = mutation.key, mutation.uid, work.service
        if answer.ok:
            work.effects.append(lambda mirror: mirror.seen(key.kind, answer.body, service))
            return ""
        if answer.code != NOT_FOUND or mutation.verb is Verb.CREATE:
            return answer.message
        if uid and answer.reason == "NotFound":
            work.effects.append(lambda mirror: mirror.missing(key, uid))
        return "is gone"


_CARRY = {
    Verb.CREATE: Errands._create,
    Verb.PATCH: Errands._change,
    Verb.STATUS: Errands._status,
    Verb.DELETE: Errands._delete,
    Verb.BIND: Errands._bind,
    Verb.EVICT: Errands._evict,
}
