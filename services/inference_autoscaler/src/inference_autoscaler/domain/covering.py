"""Whether an object says what it is to say: an API server fills in what is left out, and writes quantities its own way."""

from resources import parse_milli


def covers(there: object, wanted: object) -> bool:
    """Whether all of ``wanted`` is ``there``: of a mapping each entry, of a list each item in its place, and no more items."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(covers(there.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(there, list)
            and len(there) == len(wanted)
            and all(covers(one, other) for one, other in zip(there, wanted, strict=True))
        )
    return there == wanted or _amount(there) == _amount(wanted) is not None


def _amount(value: object) -> int | None:
    """A quantity in thousandths; None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        return parse_milli(value)
    except ValueError:
        return None
