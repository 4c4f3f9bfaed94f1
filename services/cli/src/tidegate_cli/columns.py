"""Which columns the table of a kind has."""

from tidegate_cli.column import AGE, Column
from tidegate_cli.core_columns import CORE_COLUMNS
from tidegate_cli.field_columns import FIELD_COLUMNS

COLUMNS = CORE_COLUMNS | FIELD_COLUMNS
PLAIN = (AGE,)
"""The columns of a kind that has none of its own."""


def columns_of(kind: str, *, wide: bool = False) -> tuple[Column, ...]:
    """The columns of the kind with group ``kind``, after its name."""
    return tuple(column for column in COLUMNS.get(kind, PLAIN) if wide or not column.wide)
