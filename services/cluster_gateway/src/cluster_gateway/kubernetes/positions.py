"""How far each service's decisions came to their outcomes: what lies behind that is carried out again by a successor."""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Positions:
    """``done`` is by service the last commit before which no decision is without its outcome."""

    done: dict[str, int]
    _open: dict[str, deque[list[int]]] = field(default_factory=dict)

    def seen(self, service: str, sequence: int) -> bool:
        """Whether the commit was taken already, by us or a predecessor."""
        waiting = self._open.get(service)
        return sequence <= (waiting[-1][0] if waiting else self.done.get(service, 0))

    def began(self, service: str, sequence: int, decisions: int) -> None:
        """A commit was taken, so many of whose decisions have no outcome yet."""
        self._open.setdefault(service, deque()).append([sequence, decisions])
        self._advance(service)

    def ended(self, service: str, sequence: int) -> None:
        """One more decision of the commit has its outcome."""
        for commit in self._open.get(service, ()):
            if commit[0] == sequence:
                commit[1] -= 1
                break
        self._advance(service)

    def _advance(self, service: str) -> None:
        waiting = self._open[service]
        while waiting and not waiting[0][1]:
            self.done[service] = waiting.popleft()[0]
