"""Questions to an API server about who somebody is and what they may do. Answers are remembered for a while."""

import asyncio
from typing import Generic, TypeVar

from apiserver.api import Api, ApiRequest, Unreachable
from kube import Manifest

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
MOST_REMEMBERED = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Answers, each until its time; the oldest are forgotten where there are too many."""

    def __init__(self) -> None:
        self._kept: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        until, value = self._kept.get(key, (0.0, None))
        return value if asyncio.get_running_loop().time() < until else None

    def put(self, key: K, value: V, seconds: float) -> V:
        self._kept.pop(key, None)
        self._kept[key] = (asyncio.get_running_loop().time() + seconds, value)
        if len(self._kept) > MOST_REMEMBERED:
            del self._kept[next(iter(self._kept))]
        return value


async def review(api: Api, path: str, spec: Manifest) -> Manifest:
    """The status of a review of the kind that ``path`` makes. Raises Unreachable, also where it is refused."""
    answer = await api.send(ApiRequest("POST", path, {"spec": spec}))
    if not answer.ok:
        raise Unreachable(answer.message)
    status: Manifest = answer.body.get("status") or {}
    return status
