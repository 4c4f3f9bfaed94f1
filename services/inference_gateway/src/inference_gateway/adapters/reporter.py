"""Hands in what the services bear, as facts: a look twice a second, a reading every two seconds, at once when one is to wake."""

import asyncio
import logging

from bus import Bus, BusError
from chassis.clock import Clock
from inference_gateway.adapters.activator import Activator
from inference_gateway.adapters.proxy_admin import ProxyAdmin, ProxyAway
from inference_gateway.domain.load import Counts, Meter, read_statistics
from inference_gateway.domain.readings import Said, Sample, answer_samples, load_samples, reading
from inference_gateway.domain.serving.directory import Directory
from inference_gateway.domain.serving.replica import Pool
from inference_gateway.domain.serving.service import Service
from kube import Key, from_manifest
from tidegate import subjects
from tidegate.codec.write_draft import WriteDraft
from tidegate.gateway.v1 import gateway_pb2

log = logging.getLogger(__name__)
LOOK_SECONDS, LOOKS = 0.5, 4
"""How often the proxy is looked at, and after how many looks there is a reading."""
MOST_IN_ONE = 2000


class Reporter:
    """Looks at the proxy and at those who wait."""

    def __init__(
        self, bus: Bus, clock: Clock, directory: Directory, activator: Activator, admin: ProxyAdmin, source: str
    ) -> None:
        """``source`` is what this gateway is called among several."""
        self._source = source
        self._bus, self._clock, self._directory = bus, clock, directory
        self._activator, self._admin = activator, admin
        self._meter, self._said = Meter(clock.now()), Said()
        self._counts: dict[Pool, Counts] = {}
        self._writes = 0

    async def run(self) -> None:
        """Look, and say what is new, for ever."""
        looks = 0
        while True:
            woken = await self._pause()
            try:
                await self._look()
            except ProxyAway as error:
                log.warning("proxy_away", extra={"detail": str(error)})
                continue
            looks += 1
            if woken or looks % LOOKS == 0:
                await self._report()

    async def _pause(self) -> bool:
        """Until the next look. Whether a service that nobody has asked for lately is asked for now."""
        woken = self._activator.woken
        try:
            await asyncio.wait_for(woken.wait(), LOOK_SECONDS)
        except TimeoutError:
            return False
        woken.clear()
        waiting = self._activator.waiting.by_service()
        fresh = any(self._said.is_quiet(key) for key in waiting)
        if not fresh:
            await asyncio.sleep(LOOK_SECONDS)
        return fresh

    async def _look(self) -> None:
        self._counts = read_statistics(await self._admin.statistics())
        waiting = self._activator.waiting.by_service()
        found: dict[Key, tuple[dict[Pool, Counts], int]] = {}
        for pool, counts in self._counts.items():
            key = self._directory.borne_by(pool)
            if key is not None:
                found.setdefault(key, ({}, waiting.get(key, 0)))[0][pool] = counts
        for key, held in waiting.items():
            found.setdefault(key, ({}, held))
        self._meter.look(self._clock.now(), found)

    async def _report(self) -> None:
        now, since = self._clock.now(), self._meter.since
        news: list[tuple[Service, list[Sample]]] = []
        silent: list[tuple[Service, list[Sample]]] = []
        for key, (concurrency, rps) in sorted(self._meter.read(now).items()):
            service = self._directory.services.get(key)
            if service is None or not service.is_measured:
                continue
            is_awake = any(self._directory.ready(pool) for pool in service.pools())
            load = load_samples(concurrency, rps)
            samples = self._said.load_news(key, load, now, repeat=is_awake or concurrency > 0)
            if samples and (concurrency or rps) and self._said.has_been_silent(key, since):
                silent.append((service, load_samples(0, 0)))
            samples += self._said.news(key, answer_samples(service, self._counts))
            if samples:
                news.append((service, samples))
        if silent:
            await self._hand_in(silent, since)
        if news:
            await self._hand_in(news, now)
        self._said.forget(self._directory.services)

    async def _hand_in(self, news: list[tuple[Service, list[Sample]]], now: int) -> None:
        draft = WriteDraft()
        self._writes += 1
        draft.request.id, draft.request.actor = (
            f"inference_gateway/{self._source}/{now}/{self._writes}",
            "inference_gateway",
        )
        for service, samples in news:
            for sample in samples:
                draft.store(from_manifest(reading(service, sample, now, self._source)), None)
        try:
            answer = await self._bus.request(subjects.SAMPLES, draft.request.SerializeToString())
        except BusError as error:
            log.warning("samples_not_taken", extra={"detail": str(error)})
            return
        reply = gateway_pb2.WriteReply.FromString(answer)
        if reply.error:
            log.error("samples_refused", extra={"detail": reply.error})
            return
        for service, samples in news:
            self._said.note(service.key, samples, now)
