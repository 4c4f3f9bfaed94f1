"""When an amount that changed is written: less at once, more when it has lasted, and what hardly changed not at all.

What is written is felt: less of it evicts batch work, and more invites it. So an amount rises only to the least of what came out at
the last two full minutes and now; a use that swings from sample to sample leaves what is lent where its peaks leave it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resources import Amounts

MINUTE_MS = 60_000
Pair = tuple[Amounts, Amounts]


@dataclass(slots=True)
class Lows:
    """By node what came out at the last full minute, and at the one before. No fact tells that: it is remembered."""

    by_node: dict[str, Pair] = field(default_factory=dict)

    def note(self, node: str, amounts: Amounts) -> None:
        """A full minute ends, and this is what comes out for ``node``."""
        newest, _ = self.by_node.get(node, (amounts, amounts))
        self.by_node[node] = (amounts, newest)

    def is_settled(self, node: str, amounts: Amounts) -> bool:
        """Whether another minute with the same would change nothing."""
        return self.by_node.get(node) == (amounts, amounts)

    def forget(self, node: str) -> None:
        self.by_node.pop(node, None)

    def steady(self, node: str, amounts: Amounts, present: Mapping[str, int]) -> Amounts:
        """``amounts``, but what is more than ``present`` no more than what lasted."""
        newest, older = self.by_node.get(node, (amounts, amounts))
        return {
            name: amount
            if amount <= present.get(name, 0)
            else _risen(present.get(name, 0), amount, newest, older, name)
            for name, amount in amounts.items()
        }

    def dump(self) -> dict[str, Pair]:
        """As JSON takes it."""
        return self.by_node

    def load(self, content: Mapping[str, tuple[Amounts, Amounts]]) -> None:
        """Take up what was dumped."""
        self.by_node = {node: (newest, older) for node, (newest, older) in content.items()}


def _risen(present: int, amount: int, newest: Amounts, older: Amounts, name: str) -> int:
    return max(present, min(amount, newest.get(name, amount), older.get(name, amount)))


def is_worth_writing(present: Mapping[str, int], wanted: Amounts, difference_milli: int) -> bool:
    """Whether some amount is new, or changes by more than this share, in thousandths, of what it was."""
    return any(
        name not in present or abs(amount - present[name]) * 1000 > present[name] * difference_milli
        for name, amount in wanted.items()
    )
