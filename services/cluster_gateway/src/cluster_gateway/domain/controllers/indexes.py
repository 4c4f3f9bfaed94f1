"""Sets of completion indexes as Kubernetes writes them: ``0,2-4,7``."""

from collections.abc import Iterable


def parse_indexes(text: str) -> set[int]:
    """The numbers that ``text`` lists; parts that are no number or range are passed over."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """The numbers in order, three or more in a row as a range, two as a pair."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(_part(run) for run in parts)


def _part(run: list[int]) -> str:
    if len(run) == 1:
        return str(run[0])
    return f"{run[0]}{',' if len(run) == 2 else '-'}{run[-1]}"
