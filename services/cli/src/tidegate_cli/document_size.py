"""How large files and documents may be: what is too large is told before it is built in memory.

A document of a few lines can stand for gigabytes: an alias repeats a list of aliases, each of which repeats another list.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

MOST_FILE_BYTES = 64 << 20
MOST_DOCUMENT_VALUES = 2_000_000
MOST_DOCUMENT_BYTES = MOST_FILE_BYTES
"""Of one document with its aliases written out. It may be a list of many objects."""
SMALL_BYTES = 1 << 20
"""Text of this size cannot hold so many values that they have to be counted first."""


class TooLarge(ValueError):
    """More than is read; the text names the limit."""


def read_content(path: Path | None) -> bytes:
    """What is in the file, or comes from standard input. Raises TooLarge, OSError."""
    if path is None:
        content = sys.stdin.buffer.read(MOST_FILE_BYTES + 1)
    else:
        with path.open("rb") as file:
            content = file.read(MOST_FILE_BYTES + 1)
    if len(content) > MOST_FILE_BYTES:
        raise TooLarge(f"larger than {mebibytes(MOST_FILE_BYTES)}, which is the most that a file may have; cut it up")
    return content


def count_values(text: str) -> None:
    """Raise TooLarge where a document of the YAML ``text`` has more values than are read."""
    if len(text) <= SMALL_BYTES:
        return
    count = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                count = 0
            count += isinstance(event, yaml.NodeEvent)
            if count > MOST_DOCUMENT_VALUES:
                raise TooLarge(
                    f"a document has more than {MOST_DOCUMENT_VALUES:,} values, which is the most that it may have"
                )
    except yaml.YAMLError:
        return  # what is no YAML is told with its place by whoever reads the text


def check_expansion(node: Any) -> None:
    """Raise TooLarge where the document ``node`` has more bytes with its aliases written out than a document may have."""
    size = _expanded_bytes(node, {})
    if size > MOST_DOCUMENT_BYTES:
        most = mebibytes(MOST_DOCUMENT_BYTES)
        raise TooLarge(f"has {mebibytes(size)} with its aliases written out; a document may have at most {most}")


def _expanded_bytes(node: Any, sizes: dict[int, int | None]) -> int:
    """About as many bytes as ``node`` has as JSON; each node is measured once, however often it is named."""
    known = sizes.get(id(node), -1)
    if known is None:
        raise TooLarge("has an alias that stands for itself, which has no end")
    if known >= 0:
        return known
    sizes[id(node)] = None
    if isinstance(node, yaml.ScalarNode):
        size = len(node.value) + 2
    elif isinstance(node, yaml.MappingNode):
        size = 2 + sum(_expanded_bytes(key, sizes) + _expanded_bytes(value, sizes) + 2 for key, value in node.value)
    else:
        size = 2 + sum(_expanded_bytes(item, sizes) + 1 for item in node.value)
    sizes[id(node)] = size
    return size


def mebibytes(size: int) -> str:
    """A number of bytes in the unit in which people compare it."""
    whole = size >> 20
    return f"{whole:,} MiB" if whole < 1 << 20 else f"over {1 << 20:,} MiB"
