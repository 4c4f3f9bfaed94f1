"""What the formulas are made of, and how they explain themselves."""

from dataclasses import dataclass

from resources.amounts import format_amount

CPU, MEMORY = "cpu", "memory"
MIB = 1 << 20
COUNTED = (CPU, MEMORY)
"""cpu in milli-cores, memory in bytes."""


@dataclass(frozen=True, slots=True)
class Use:
    """An amount of both."""

    cpu: int = 0
    memory: int = 0

    def of(self, name: str) -> int:
        return self.cpu if name == CPU else self.memory

    def __add__(self, other: "Use") -> "Use":
        return Use(self.cpu + other.cpu, self.memory + other.memory)

    def over(self, other: "Use") -> "Use":
        """What is left of it without ``other``, never less than nothing."""
        return Use(max(self.cpu - other.cpu, 0), max(self.memory - other.memory, 0))

    def at_least(self, other: "Use") -> "Use":
        """The larger of both, each by itself."""
        return Use(max(self.cpu, other.cpu), max(self.memory, other.memory))

    def at_most(self, other: "Use") -> "Use":
        """The smaller of both, each by itself."""
        return Use(min(self.cpu, other.cpu), min(self.memory, other.memory))


NOTHING = Use()


@dataclass(frozen=True, slots=True)
class Term:
    """One summand: what it is in words, and how much; what is taken away counts negative."""

    words: str
    amount: int


@dataclass(frozen=True, slots=True)
class Lent:
    """How much of ``resource`` may be lent: never less than nothing. ``terms`` come to it, but for what ``notes`` say."""

    resource: str
    amount: int
    terms: tuple[Term, ...] = ()
    notes: tuple[str, ...] = ()

    def explained(self) -> str:
        """``kubernetes.io/batch-cpu 15000 = capacity 50 - margin 20 - …``"""
        unit = MEMORY if self.resource.endswith(MEMORY) else CPU
        said = " ".join(_signed(unit, term, at) for at, term in enumerate(self.terms))
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return f"{self.resource} {shown(self.resource, self.amount)} = {said}{notes}"


def _signed(unit: str, term: Term, at: int) -> str:
    sign = "- " if term.amount < 0 else "+ " if at else ""
    return f"{sign}{term.words} {shown(unit, abs(term.amount))}"


def shown(resource: str, amount: int) -> str:
    """An amount for people, bytes to the nearest MiB where there are many."""
    if resource.endswith(MEMORY) and amount >= 10 * MIB:
        return f"{(amount + MIB // 2) // MIB}Mi"
    return format_amount(resource, amount)
