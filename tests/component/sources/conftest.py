"""A collector at work, with real connections."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.sources import collector
from inference_autoscaler.sources.asking import Asker
from inference_autoscaler.sources.collector import Collector
from inference_autoscaler.sources.credentials import Credentials
from inference_autoscaler.sources.fetching import Fetcher

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

if TYPE_CHECKING:
    pass


@pytest.fixture
def plan() -> SamplingPlan:
    return SamplingPlan()


@pytest.fixture
async def world(plan: SamplingPlan, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """A collector at work. A source has half a second for its answer."""
    from asked_world import HandingIn, World

    monkeypatch.setattr(collector, "LOOK_SECONDS", 0.02)
    made: World = World()
    async with Fetcher(0.5) as fetcher:
        asker = Asker(fetcher, Credentials(made.store.get, made.secret), made.now)
        task = asyncio.create_task(
            Collector(plan, lambda: made if made.leads else None, asker, HandingIn(made), made.now).run()
        )
        yield made
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
