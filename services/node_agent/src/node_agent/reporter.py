"""Says upstream what is new, and says it again until it is stored; of each pod only the newest state is said."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from kube import Manifest
from kube.node_evictions import Wish
from node_agent.domain.usage import UsageSample
from node_agent.inventory.machine import Devices, Inventory
from node_agent.ports import PodReport, Report, Upstream
from node_agent.settings import AgentSettings

_log = logging.getLogger(__name__)


class Reporter:
    """Gathers what changes while a report is on its way, and sends it as the next one."""

    def __init__(
        self,
        settings: AgentSettings,
        upstream: Upstream,
        look_up: Callable[[str], tuple[PodReport | None, bool]],
        stored: Callable[[Report], None],
    ) -> None:
        """``look_up`` gives the state of a pod (None when it is unknown) and whether it is gone."""
        self._settings, self._upstream = settings, upstream
        self._look_up, self._stored = look_up, stored
        self._pods: dict[str, None] = {}
        self._node = _NodeNews()
        self._news = asyncio.Event()

    def pod_changed(self, uid: str) -> None:
        """The state of a pod is to be said."""
        self._pods[uid] = None
        self._news.set()

    def inventory_changed(self, inventory: Inventory | Devices) -> None:
        """The node's inventory is to be said."""
        self._changed(replace(self._node, inventory=inventory))

    def measured(self, usage: tuple[UsageSample, ...], more: Manifest | None = None) -> None:
        """Usage samples are to be said; ones that were not said yet are dropped for them. ``more`` is as in ``Report``."""
        self._changed(replace(self._node, usage=usage, more_usage=more))

    def wish(self, evictions: tuple[Wish, ...]) -> None:
        """Which pods have to leave is to be said."""
        self._changed(replace(self._node, evictions=evictions))

    def _changed(self, news: "_NodeNews") -> None:
        self._node = news
        self._news.set()

    async def run(self) -> None:
        """Report for ever."""
        while True:
            await self._news.wait()
            await asyncio.sleep(0)  # what changes in the same turn of the loop goes into the same report
            await self._say()

    async def _say(self) -> None:
        self._news.clear()
        uids, self._pods = list(self._pods), {}
        news, self._node = self._node, _NodeNews()
        if not uids and news == _NodeNews():  # it went out with a report that was said again
            return
        pause_ms = self._settings.report_retry_ms
        while True:
            report = self._report(uids, news)
            try:
                await self._upstream.report(report)
            except Exception as error:  # the port promises no kind; each of them means: not known to be stored
                _log.warning("report_not_stored", extra={"error": repr(error), "retry_ms": pause_ms})
            else:
                self._stored(report)
                return
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(pause_ms * 2, self._settings.report_retry_limit_ms)
            uids = list(dict.fromkeys([*uids, *self._pods]))
            self._pods = {}
            news, self._node = self._node.over(news), _NodeNews()

    def _report(self, uids: list[str], news: "_NodeNews") -> Report:
        found = [(uid, *self._look_up(uid)) for uid in uids]
        pods = tuple(report for _, report, _ in found if report is not None)
        gone = tuple(uid for uid, _, is_gone in found if is_gone)
        node = self._settings.node
        return Report(node, pods, gone, news.inventory, news.usage, news.evictions, news.more_usage)


@dataclass(frozen=True, slots=True)
class _NodeNews:
    """What is new of the node itself; None and nothing where nothing is."""

    inventory: Inventory | Devices | None = None
    usage: tuple[UsageSample, ...] = ()
    more_usage: Manifest | None = None
    evictions: tuple[Wish, ...] | None = None

    def over(self, older: "_NodeNews") -> "_NodeNews":
        """The newest of both, part by part."""
        usage = self if self.usage else older
        return _NodeNews(
            self.inventory or older.inventory,
            usage.usage,
            usage.more_usage,
            older.evictions if self.evictions is None else self.evictions,
        )
