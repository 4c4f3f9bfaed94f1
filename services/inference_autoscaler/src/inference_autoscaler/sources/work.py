"""The whole of it, put together."""

from collections.abc import Callable, Mapping

from chassis.process import Context
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.sources.asking import Asker
from inference_autoscaler.sources.collector import Collector, View
from inference_autoscaler.sources.credentials import Credentials
from inference_autoscaler.sources.fetching import Fetcher
from inference_autoscaler.sources.hand_in import HandIn, named_secret
from kube import Key, Object


async def collect(plan: SamplingPlan, view: Callable[[], View | None], context: Context, seconds: float) -> None:
    """Keep the samples of what ``view`` knows, for ever; a source has ``seconds`` for its answer."""
    bus, now, watch = context.bus, context.clock.now, context.measures.watch

    def find(key: Key) -> Object | None:
        known = view()
        return None if known is None else known.store.get(key)

    async def secret(whose: Key, name: str) -> Mapping[str, bytes] | None:
        return await named_secret(bus, whose, name)

    async with Fetcher(seconds) as fetcher:
        asker = Asker(fetcher, Credentials(find, secret), now)
        collector = Collector(plan, view, asker, HandIn(bus), now)
        watch("sources", "Sources of samples that are asked.", lambda: collector.counts()[0])
        watch("silent_sources", "Of these the ones that said nothing the last time.", lambda: collector.counts()[1])
        await collector.run()
