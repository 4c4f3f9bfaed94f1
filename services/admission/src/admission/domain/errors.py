"""Why a manifest is not let in: every wrong field with its value, the rule that it breaks and the way out."""

from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_VALUE = 120


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field. ``path`` is dotted, with ``[0]`` and ``["a/b"]``; ``rule`` says what holds and what to do."""

    path: str
    value: object
    rule: str

    def __str__(self) -> str:
        if self.value is None or self.value == "":
            return f"{self.path}: {self.rule}"
        text = repr(self.value)
        if len(text) > LONGEST_VALUE:
            text = text[:LONGEST_VALUE] + "…"
        return f"{self.path}: {text}: {self.rule}"


class Rejected(ValueError):
    """The object ``what`` is not let in; ``errors`` holds everything that is wrong with it, in the order of its fields."""

    def __init__(self, what: str, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(f"{what} is refused: " + "; ".join(str(error) for error in self.errors))
