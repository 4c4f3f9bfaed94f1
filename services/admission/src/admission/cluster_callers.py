"""Those whom a Kubernetes cluster knows: it is asked who they are (TokenReview) and what they may do (SubjectAccessReview).

Answers are remembered for a short time, so that a right that is taken away, or a token that is revoked, counts for at most so
long: ``GRANTED_SECONDS`` for what was granted, ``REFUSED_SECONDS`` for what was not. A stream that has begun goes on.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from admission.applier import Unavailable
from admission.authors import is_part
from admission.callers import EVERYTHING, Ask, Denied, Sight
from apiserver import Api, Unreachable
from apiserver.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS, Remembered, review
from kube import KINDS, Manifest
from tidegate.gateway.v1 import gateway_pb2

GRANTED_SECONDS, REFUSED_SECONDS = 30.0, 5.0
_OF_NO_NAME = ("create", "list", "watch")
"""Verbs that are granted for a kind, not for an object."""


class ClusterCallers:
    """Asks ``api``, whose own rights must let it make reviews of tokens and of access."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: Remembered[bytes, ClusterCaller | str] = Remembered()
        self._granted: Remembered[tuple[str, tuple[tuple[str, str], ...]], str] = Remembered()

    async def caller(self, token: str) -> "ClusterCaller":
        """Whose token it is. Raises Denied, Unavailable."""
        digest = hashlib.sha256(token.encode()).digest()
        found = self._known.get(digest)
        if found is None:
            found = await self._review_token(token)
            seconds = REFUSED_SECONDS if isinstance(found, str) else GRANTED_SECONDS
            self._known.put(digest, found, seconds)
        if isinstance(found, str):
            raise Denied(found)
        return found

    async def _review_token(self, token: str) -> "ClusterCaller | str":
        """Who it is, or why it is nobody."""
        status = await self._ask(TOKEN_REVIEWS, {"token": token})
        user = status.get("user") or {}
        name = str(user.get("username") or "")
        if not status.get("authenticated") or not name:
            return f"the cluster does not know the token: {status.get('error') or 'it is unknown or has expired'}"
        if is_part(name):
            return f"no user may be called {name!r}: a part of the system is"
        extra = {key: gateway_pb2.ExtraValues(values=values) for key, values in (user.get("extra") or {}).items()}
        groups = user.get("groups") or ()
        return ClusterCaller(
            self, gateway_pb2.Identity(user=name, uid=user.get("uid") or "", groups=groups, extra=extra)
        )

    async def refusal(self, identity: gateway_pb2.Identity, ask: Ask) -> str:
        """Why they may not do it; "" where they may. Raises Unavailable."""
        return await self.refuses(identity, attributes(ask), _words(ask))

    async def refuses(self, identity: gateway_pb2.Identity, wanted: Mapping[str, str], words: str) -> str:
        """The same of ``wanted``, the ``resourceAttributes`` of a review; ``words`` say it to people."""
        who = (identity.SerializeToString(deterministic=True).hex(), tuple(sorted(wanted.items())))
        known = self._granted.get(who)
        if known is not None:
            return known
        spec = {"user": identity.user, "groups": list(identity.groups), "resourceAttributes": dict(wanted)}
        spec |= {"uid": identity.uid} if identity.uid else {}
        spec |= {"extra": {key: list(found.values) for key, found in identity.extra.items()}} if identity.extra else {}
        status = await self._ask(ACCESS_REVIEWS, spec)
        if status.get("allowed"):
            return self._granted.put(who, "", GRANTED_SECONDS)
        why = status.get("reason") or status.get("evaluationError") or "the cluster's rules do not allow it"
        return self._granted.put(who, f"{identity.user} may not {words}: {why}", REFUSED_SECONDS)

    async def _ask(self, path: str, spec: Manifest) -> Manifest:
        """The status of a review. Raises Unavailable."""
        try:
            return await review(self._api, path, spec)
        except Unreachable as error:
            raise Unavailable(f"the cluster does not say who may do that: {error}") from error


@dataclass(frozen=True, slots=True)
class ClusterCaller:
    """Somebody with an identity in the cluster. What they write is carried to the API server under it."""

    callers: ClusterCallers
    identity: gateway_pb2.Identity

    @property
    def name(self) -> str:
        return self.identity.user

    @property
    def sight(self) -> Sight:
        """All of a list: whoever may not have it is refused it, as by the API server."""
        return None

    @property
    def places(self) -> tuple[Sequence[str], Sequence[str]]:
        """The cluster knows them, and tells only when it is asked."""
        return (), ()

    async def check(self, *asks: Ask) -> None:
        """Raises Denied unless they may do all of it, and Unavailable where the cluster does not say."""
        refusals = await asyncio.gather(*map(self._refusal, dict.fromkeys(map(_of_kind, asks))))
        if any(refusals):
            refusals = await asyncio.gather(*map(self._refusal, dict.fromkeys(asks)))
        for refusal in refusals:
            if refusal:
                raise Denied(refusal)

    async def overview(self) -> Sight:
        """Everything for who may list everything, else nothing."""
        refusal = await self._refusal(Ask("list", EVERYTHING))
        return (lambda _: False) if refusal else None

    async def _refusal(self, ask: Ask) -> str:
        return await self.callers.refusal(self.identity, ask)


def _of_kind(ask: Ask) -> Ask:
    """The same of every object of the kind in the namespace: one answer for many objects."""
    return ask._replace(name="")


def attributes(ask: Ask) -> Manifest:
    """``resourceAttributes`` of a SubjectAccessReview."""
    named = {"name": ask.name} if ask.name and ask.verb not in _OF_NO_NAME else {}
    parts = {**named, **({"subresource": ask.subresource} if ask.subresource else {})}
    if ask.namespace:
        parts["namespace"] = ask.namespace
    if ask.kind == EVERYTHING:
        return {"verb": ask.verb, "group": "*", "resource": "*", **parts}
    info = KINDS[ask.kind]
    return {"verb": ask.verb, "group": info.group, "version": info.version, "resource": info.plural, **parts}


def _words(ask: Ask) -> str:
    what = "everything" if ask.kind == EVERYTHING else f"{KINDS[ask.kind].plural}"
    part = f"/{ask.subresource}" if ask.subresource else ""
    which = f" {ask.name}" if ask.name and ask.verb not in _OF_NO_NAME else ""
    return f"{ask.verb} {what}{part}{which}" + (
        f" in namespace {ask.namespace}" if ask.namespace else " in the cluster"
    )
