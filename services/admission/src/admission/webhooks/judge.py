"""Reviews are judged by what is known, and again when more is known: facts come a moment after the API server has stored them."""

import asyncio
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass

from admission.domain.webhook import answer
from admission.domain.world import Searched
from admission.view import View
from kube import Key, Manifest

HEARD_SECONDS = 1.0
"""How long is waited for what a manifest names and is not among the facts yet: it may have been made just before."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges by ``view``, which is ready."""

    view: View

    async def judged(self, review: Manifest, *, patch: bool) -> Manifest:
        """The answer to a review. Nobody is refused for what was made just before, and is heard of a moment later."""
        until = asyncio.get_running_loop().time() + HEARD_SECONDS
        while True:
            searched = Searched(self.view.store)
            told = answer(review, searched, patch=patch)
            if told["response"]["allowed"] or not await self.heard_of(searched.missed, until):
                return told

    async def heard_of(self, keys: AbstractSet[Key], until: float | None = None) -> bool:
        """Wait a little until one of them is there; whether it is."""
        if until is None:
            until = asyncio.get_running_loop().time() + HEARD_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while keys and not any(self.view.store.get(key) for key in keys):
                    await self.view.reach(self.view.revision + 1)
                return bool(keys)
        return False
