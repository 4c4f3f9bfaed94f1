"""Snapshots for users: of the present from admission's own fold, and of the moment at which a decision was made."""

import asyncio

from admission.view import View
from bus import Bus
from chassis.clock import Clock
from chassis.snapshots import Snapshots
from tidegate.codec.snapshots import pack
from tidegate.services import DECIDERS


class SnapshotDesk:
    """Takes snapshots; the services that decide notice nothing of it."""

    def __init__(self, bus: Bus, view: View, clock: Clock, version: str) -> None:
        self._taker, self._view, self._clock = Snapshots(bus, DECIDERS, version), view, clock

    async def take(self, decision_id: str = "") -> bytes:
        """The content of a snapshot file; raises NotKept where a decision, or the facts it was made on, are gone."""
        if decision_id:
            return pack(await self._taker.of_decision(decision_id))
        logs, goal = await self._taker.logs()
        await self._view.reach(goal)
        fold, objects, now = self._view.standing(), list(self._view.store.objects.values()), self._clock.now()
        return await asyncio.get_running_loop().run_in_executor(
            None, lambda: pack(self._taker.present(logs, objects, fold, now))
        )
