"""Says upstream what is new, and says it again until it is stored; of each pod only the newest state is said."""

import asyncio
import logging
from collections.abc import Callable

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
        self._inventory: Inventory | Devices | None = None
        self._usage: tuple[UsageSample, ...] = ()
        self._news = asyncio.Event()

    def pod_changed(self, uid: str) -> None:
        """The state of a pod is to be said."""
        self._pods[uid] = None
        self._news.set()

    def inventory_changed(self, inventory: Inventory | Devices) -> None:
        """The node's inventory is to be said."""
        self._inventory = inventory
        self._news.set()

    def measured(self, usage: tuple[UsageSample, ...]) -> None:
        """Usage samples are to be said; ones that were not said yet are dropped for them."""
        self._usage = usage
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
        inventory, self._inventory = self._inventory, None
        usage, self._usage = self._usage, ()
        if not uids and inventory is None and not usage:  # it went out with a report that was said again
            return
        pause_ms = self._settings.report_retry_ms
        while True:
            report = self._report(uids, inventory, usage)
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
            inventory, self._inventory = self._inventory or inventory, None
            usage, self._usage = self._usage or usage, ()

    def _report(self, uids: list[str], inventory: Inventory | Devices | None, usage: tuple[UsageSample, ...]) -> Report:
        found = [(uid, *self._look_up(uid)) for uid in uids]
        pods = tuple(report for _, report, _ in found if report is not None)
        gone = tuple(uid for uid, _, is_gone in found if is_gone)
        return Report(self._settings.node, pods, gone, inventory, usage)
