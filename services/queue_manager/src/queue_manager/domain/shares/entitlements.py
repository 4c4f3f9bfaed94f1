"""What every queue may use and may reclaim, in the words that gang_scheduler hears, told when it changes."""

from collections.abc import Iterable, Mapping

from kube import Decision, Manifest
from kube.words import counted
from queue_manager.domain.quotas.queue_tree import ROOT, queue_key
from queue_manager.domain.shares.past_use import PastUse

NAME = "EntitlementsComputed"
SUBJECT = queue_key(ROOT)


class Entitlements:
    """Whether the entries of the queues have to be told again."""

    def __init__(self, half_life_ms: int = 0, levels: bool = False) -> None:
        self._order: Manifest = {"half_life_ms": half_life_ms, "levels": levels}
        self._past: Manifest = {}
        self._untold = True
        self._version = 0
        self._told: Manifest | None = None
        """The queues as they were told last, where that is known."""

    def recall(self, payload: Manifest) -> None:
        """What was told last, by a predecessor: it need not be told again."""
        self._version, self._told = int(payload.get("version") or 0), payload.get("queues")
        self._untold = False

    def forget_told(self) -> None:
        """What was told did not arrive: tell it again."""
        self._untold, self._told = True, None

    def tell(
        self,
        news: bool,
        parts: Iterable[Mapping[str, Manifest]],
        uid: str,
        now: int,
        past: Mapping[str, PastUse] | None = None,
    ) -> Decision | None:
        """The decision that tells the entries of all ``parts``; None where there are no ``news`` since the last one.

        ``uid`` is the root queue's; ``past`` what queues have used lately, where that orders them.
        """
        used = {
            name: {"amounts": use.amounts, "at": use.at, "used": use.used} for name, use in sorted((past or {}).items())
        }
        if not (news or self._untold or used != self._past):
            return None
        # By name: the same queues give the same bytes, in whatever order they came to be known.
        queues = dict(sorted(item for entries in parts for item in entries.items()))
        if queues == self._told and used == self._past:
            return None
        self._untold, self._told = False, queues
        self._past = used
        # Greater than every version told before, by a predecessor too, as long as the clock has not gone back.
        self._version = max(self._version + 1, now)
        payload: Manifest = {"version": self._version, "queues": queues}
        if any(self._order.values()):
            payload["order"] = {**self._order, "past": used}
        return Decision(
            NAME, SUBJECT, uid, "SharesChanged", f"shares of {counted(len(queues), 'queue')}", payload=payload
        )
