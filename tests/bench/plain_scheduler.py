"""A scheduler as a textbook has it: one pod after the other, a loop over all nodes for each. What ours is held against."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class PlainNode:
    """Free amounts by resource, and what runs there."""

    free: dict[str, int]
    whole: dict[str, int]
    zone: str = ""
    marked: int = 0
    """How many pods of the set that affinity is about."""


@dataclass(slots=True)
class PlainScheduler:
    """Best fit with the rules of one set of pods; a rule is None, ``near``, ``apart`` or ``even``."""

    nodes: list[PlainNode]
    zones: dict[str, int] = field(default_factory=dict)

    def place(self, needs: dict[str, int], rule: str | None = None) -> PlainNode | None:
        """The fullest node that fits and keeps the rule."""
        best, score = None, -1.0
        least = min(self.zones.values(), default=0)
        for node in self.nodes:
            if any(node.free.get(name, 0) < amount for name, amount in needs.items()):
                continue
            if rule == "near" and self.zones and any(self.zones.values()) and not self.zones.get(node.zone):
                continue
            if rule == "apart" and node.marked:
                continue
            if rule == "even" and self.zones.get(node.zone, 0) + 1 - least > 1:
                continue
            found = sum(1 - (node.free[name] - amount) / node.whole[name] for name, amount in needs.items())
            if found > score:
                best, score = node, found
        if best is not None:
            for name, amount in needs.items():
                best.free[name] -= amount
            if rule is not None:
                best.marked += 1
                self.zones[best.zone] = self.zones.get(best.zone, 0) + 1
        return best


def plain_rate(nodes: int, needs: dict[str, int], rule: str | None = None, pods: int = 60) -> float:
    """Pods a second on ``nodes`` empty nodes of three zones."""
    whole = {"cpu": 64_000, "memory": 256 << 30}
    made = [PlainNode(dict(whole), whole, f"z{number % 3}") for number in range(nodes)]
    plain = PlainScheduler(made, dict.fromkeys(("z0", "z1", "z2"), 0) if rule else {})
    began = time.process_time()
    for _ in range(pods):
        plain.place(needs, rule)
    return pods / (time.process_time() - began)
