"""An operator's word to the scheduler: nothing more is placed for now, or it goes on."""

from admission.applier import Applier, Change, Result
from admission.callers import Ask, Caller
from admission.view import View
from chassis.clock import Clock
from kube import Key, Manifest, rfc3339
from kube.scheduling_pause import NAMESPACE, SWITCH, Pause, switched


class SchedulingSwitch:
    """Writes the switch that the scheduler reads among the facts."""

    def __init__(self, view: View, applier: Applier, clock: Clock) -> None:
        self._view, self._applier, self._clock = view, applier, clock

    async def set(self, user: Caller, *, paused: bool, reason: str) -> tuple[list[Result], int, str]:
        """What came of it, the revision that holds it, and what is so now, in words. Raises Denied."""
        await user.check(Ask("update", *SWITCH))
        since = rfc3339(self._clock.now())
        pause = Pause(user.name, since, reason) if paused else None
        results, revision = list[Result](), 0
        for manifest in (*self._namespace(), switched(pause, user.name, since)):
            # One after the other: an API server refuses what is to be in a namespace that it does not have yet.
            done, revision = await self._applier.begin(user.name, [Change(manifest)], user.identity)
            results += done
        return results, revision, str(pause or "scheduling goes on")

    def _namespace(self) -> list[Manifest]:
        """The namespace of the switch, where it is not there."""
        if self._view.store.get(Key("Namespace", "", NAMESPACE)) is not None:
            return []
        return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
