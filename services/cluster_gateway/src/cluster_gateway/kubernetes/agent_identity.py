"""Which node an agent beside a kubelet speaks for: the one on which its own pod is, as the token of that pod shows.

All agents are one user of the bus. Kubelets give each a token for its pod, made for Tidegate alone (its audience), which ends with
the pod; the API server says whose it is. So an agent that was taken over can lie about its own node and about no other.
"""

import hashlib

from apiserver.api import Api
from apiserver.reviews import TOKEN_REVIEWS, Remembered, review
from cluster_gateway.domain.mirror import Mirror

AUDIENCE = "tidegate"
POD = "authentication.kubernetes.io/pod-uid"
KNOWN_SECONDS, UNKNOWN_SECONDS = 300.0, 5.0
"""How long an answer counts. Each agent reports once a minute: that is one question in five reports."""


class AgentIdentity:
    """Knows the agents of ``account`` (``system:serviceaccount:<namespace>:<name>``); without one everybody is believed."""

    def __init__(self, api: Api, mirror: Mirror, account: str) -> None:
        self._api, self._mirror, self._account = api, mirror, account
        self._pods: Remembered[bytes, str] = Remembered()

    async def refusal(self, node: str, token: str) -> str:
        """Why whoever has ``token`` may not speak for ``node``; "" where they may. Raises Unreachable."""
        if not self._account:
            return ""
        if not token:
            return "the report has no token of its agent's pod"
        digest = hashlib.sha256(token.encode()).digest()
        uid = self._pods.get(digest)
        if uid is None:
            uid = await self._pod_of(token)
            self._pods.put(digest, uid, KNOWN_SECONDS if uid else UNKNOWN_SECONDS)
        if not uid:
            return f"the token is none of a pod of {self._account}"
        key = self._mirror.pods.get(uid)
        pod = self._mirror.store.get(key) if key is not None else None
        if pod is None:
            return "the pod of the agent is not known yet"
        there = pod.spec.get("nodeName")
        return "" if there == node else f"an agent on {there} speaks for no other node"

    async def _pod_of(self, token: str) -> str:
        """The uid of the pod of ``account`` for which the token was made; "" where it is no such token."""
        status = await review(self._api, TOKEN_REVIEWS, {"token": token, "audiences": [AUDIENCE]})
        user = status.get("user") or {}
        is_agent = status.get("authenticated") and user.get("username") == self._account
        pods = (user.get("extra") or {}).get(POD) or [""]
        return str(pods[0]) if is_agent and AUDIENCE in (status.get("audiences") or ()) else ""
