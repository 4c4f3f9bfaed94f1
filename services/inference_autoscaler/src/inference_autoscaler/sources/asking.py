"""How each kind of source is asked."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from inference_autoscaler.domain.sampling.source import Access, Exposition, JetStreamLag, JsonValue, Promql, Source
from inference_autoscaler.sources import exposition
from inference_autoscaler.sources.answers import SourceFailed, Values, lag, located, vector
from inference_autoscaler.sources.credentials import Credentials
from inference_autoscaler.sources.fetching import Fetcher, Refused, Request, server_of

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PodAddress:
    """Where a pod tells its metrics; ``url`` is empty where it does not say."""

    name: str
    uid: str
    url: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Values by pod, or by "". ``missing`` says of pods that tell none why."""

    values: Values
    missing: Mapping[str, str] = field(default_factory=dict)


class Asker:
    """Asks sources; remembers the last look at each pod, of whose counters the next one tells the growth."""

    def __init__(self, fetcher: Fetcher, credentials: Credentials, now: Callable[[], int]) -> None:
        self._fetcher, self._credentials, self._now = fetcher, credentials, now
        self._looks: dict[tuple[Exposition, str], exposition.Look] = {}

    async def ask(self, source: Source, pods: Sequence[PodAddress]) -> Answer:
        """What ``source`` says; ``pods`` are those of its target. Raises SourceFailed."""
        match source:
            case Promql():
                form = (("query", source.query), *source.parameters)
                read = partial(vector, by=source.by, summed=source.summed, empty_is_zero=source.empty_is_zero)
                return await self._of_one(f"{source.address}/api/v1/query", source.access, read, form=form)
            case JetStreamLag():
                asked = (("acc", source.account), ("consumers", "true"), ("config", "true"))
                read = partial(lag, account=source.account, stream=source.stream, consumer=source.consumer)
                return await self._of_one(f"{source.address}/jsz", source.access, read, parameters=asked)
            case JsonValue():
                return await self._of_one(source.url, source.access, partial(located, location=source.location))
            case Exposition():
                return await self._look_at(source, pods)

    async def _of_one(self, url: str, access: Access, read: Callable[[bytes], Values], **asked: Pairs) -> Answer:
        """What ``read`` makes of the content that ``url`` gives."""
        content = await self._get(url, access, **asked)
        try:
            return Answer(read(content))
        except SourceFailed as failed:
            raise SourceFailed(f"{server_of(url)}: {failed}") from None

    async def _get(
        self,
        url: str,
        access: Access,
        *,
        parameters: Pairs = (),
        form: Pairs = (),
    ) -> bytes:
        """The content that ``url`` gives to whom ``access`` lets in; what was refused is asked once more with what counts now."""
        for anew in (False, True):
            shown = await self._credentials.shown(access, anew=anew)
            try:
                return await self._fetcher.get(Request(url, parameters, form, shown.headers, shown.tls))
            except Refused:
                if anew or access.authentication is None:
                    raise
        raise AssertionError("the second try returns or raises")

    async def _look_at(self, source: Exposition, pods: Sequence[PodAddress]) -> Answer:
        told = await asyncio.gather(*(self._of_pod(source, pod) for pod in pods))
        known = {(source, pod.uid) for pod in pods}
        for gone in [place for place in self._looks if place[0] == source and place not in known]:
            del self._looks[gone]
        values = {pod.name: found for pod, found in zip(pods, told, strict=True) if isinstance(found, int)}
        missing = {pod.name: found for pod, found in zip(pods, told, strict=True) if isinstance(found, str)}
        return Answer(values, missing)

    async def _of_pod(self, source: Exposition, pod: PodAddress) -> int | str:
        """The value that one pod tells, or why it tells none."""
        place = (source, pod.uid)
        if not pod.url:
            return "it says neither by an annotation nor by a port of this name where it tells metrics"
        try:
            content = await self._fetcher.get(Request(pod.url))
            found = exposition.look(content, exposition.names_of(source.metric), source.labels, self._now())
            value = exposition.value(source.metric, self._looks.get(place), found)
        except SourceFailed as failed:
            self._looks.pop(place, None)
            return str(failed)
        self._looks[place] = found
        return "nothing happened between two looks at its counters" if value is None else value
