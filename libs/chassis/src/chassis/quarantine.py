"""What a core stumbled over: it is kept away from the core for a while, so that everything else goes on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kube import Event, Key, Manifest, Object, Store, rfc3339

FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 600_000


@dataclass(slots=True)
class Case:
    """One object that the core stumbled over. ``until`` is when it gets another chance, ``times`` how often it had one.

    One that is ``hidden`` does not exist for the core; of any other it only decides nothing. ``away`` is over once the
    case has its next chance; it is remembered for a while, so that the pause after the next fault is a longer one.
    """

    error: str
    uid: str
    spec_revision: int
    hidden: bool
    times: int
    since: int
    until: int
    away: bool = True


@dataclass(slots=True)
class Quarantine:
    """All that is kept away from the cores of one service, over its terms.

    ``ticks`` are milliseconds of a clock that never jumps; times for people are milliseconds since the epoch.
    """

    cases: dict[Key, Case] = field(default_factory=dict)
    entries: dict[tuple[str, int], str] = field(default_factory=dict)
    """Entries of logs of decisions (service, sequence) that the core is not given, with the error."""

    trouble: str = ""
    """Why nothing at all is decided just now; empty while something is."""

    def isolate(self, item: Object, error: str, ticks: int, now: int, *, hidden: bool) -> None:
        """Keep the object away, each time for twice as long."""
        before = self.cases.get(item.key)
        times = before.times + 1 if before is not None and before.uid == item.uid else 1
        pause = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(times - 1, 16))
        self.cases[item.key] = Case(error, item.uid, item.spec_revision, hidden, times, now, ticks + pause)

    def resting(self) -> Iterator[tuple[Key, int]]:
        """The objects of which nothing is to be decided, each with the time of its next chance."""
        return ((key, case.until) for key, case in self.cases.items() if case.away and not case.hidden)

    def hidden(self) -> frozenset[Key]:
        """The objects that are not there for the core."""
        return frozenset(key for key, case in self.cases.items() if case.away and case.hidden)

    def released(self) -> list[tuple[Key, bool]]:
        """Those that have their next chance just now, and whether they were hidden before."""
        return [(key, case.hidden) for key, case in self.cases.items() if not case.away]

    def shown(self, events: Sequence[Event], ticks: int) -> Sequence[Event]:
        """What the core may see of ``events``. An object that is gone is forgotten; a changed one has its chance soon."""
        if not self.cases:
            return events
        return [event for event in events if self._sees(event, ticks)]

    def _sees(self, event: Event, ticks: int) -> bool:
        case = self.cases.get(event.key)
        if case is None:
            return True
        unseen = case.away and case.hidden
        if event.new is None:
            del self.cases[event.key]
        elif event.new.uid != case.uid or event.new.spec_revision != case.spec_revision:
            case.spec_revision = event.new.spec_revision
            case.until = min(case.until, ticks + FIRST_PAUSE_MS)
        return not unseen

    def release(self, store: Store, ticks: int) -> list[Event]:
        """Give those their next chance whose time has come; the hidden ones among them, to be folded as new."""
        events = []
        for key, case in list(self.cases.items()):
            if case.away and case.until <= ticks:
                case.away = False
                item = store.get(key)
                events += [Event(None, item)] if case.hidden and item is not None else []
            elif case.until + LONGEST_PAUSE_MS <= ticks:
                del self.cases[key]
        return events

    def deadline(self) -> int | None:
        """When the next one has its chance."""
        return min((case.until for case in self.cases.values() if case.away), default=None)

    def about(self, key: Key, ticks: int) -> str:
        """What to tell those who ask about an object; empty when it is not kept away."""
        case = self.cases.get(key)
        if case is None or not case.away:
            return ""
        again = max(0, case.until - ticks) // 1000
        return f"set aside since {rfc3339(case.since)}, to be tried again in {again} s: {case.error}"

    def report(self, ticks: int) -> Manifest:
        """All of it, for those who ask how the service is: ``trouble`` and, by name, what is ``aside``."""
        aside = {str(key): self.about(key, ticks) for key in sorted(self.cases) if self.cases[key].away}
        aside |= {
            f"decision.{service}/{sequence}": error for (service, sequence), error in sorted(self.entries.items())
        }
        return {"trouble": self.trouble, "aside": aside}
