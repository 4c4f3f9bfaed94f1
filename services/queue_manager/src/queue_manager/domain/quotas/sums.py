"""Sums of amounts that are kept up to date in place."""

from resources import Amounts


def accumulate(total: Amounts, amounts: Amounts, sign: int) -> None:
    """Add ``amounts`` (times ``sign``) to ``total`` in place; what comes to nothing is dropped."""
    for name, amount in amounts.items():
        value = total.get(name, 0) + sign * amount
        if value:
            total[name] = value
        else:
            total.pop(name, None)
