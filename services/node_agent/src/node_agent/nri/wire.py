"""Messages of protobuf, as far as NRI and ttrpc need them: numbers, and what has a length. Fields are known by number."""

from collections.abc import Iterator

Fields = dict[int, list[int | bytes]]
"""The values of each field, in their order."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def number(field: int, value: int) -> bytes:
    """A field with a whole number; negative ones take ten bytes, as everywhere."""
    return _varint(field << 3 | _VARINT) + _varint(value & (1 << 64) - 1)


def text(field: int, value: str) -> bytes:
    """A field with a text; nothing where it is empty."""
    return message(field, value.encode()) if value else b""


def message(field: int, content: bytes) -> bytes:
    """A field with a message, or with bytes."""
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def fields(content: bytes) -> Fields:
    """What a message holds; raises ValueError where it is none."""
    found: Fields = {}
    for field, value in _read(content):
        found.setdefault(field, []).append(value)
    return found


def inner(found: Fields, field: int) -> bytes:
    """The message in a field; an empty one where there is none."""
    value = (found.get(field) or [b""])[-1]
    return value if isinstance(value, bytes) else b""


def word(found: Fields, field: int) -> str:
    """The text in a field."""
    return inner(found, field).decode()


def whole(found: Fields, field: int) -> int:
    """The number in a field; 0 where there is none."""
    value = (found.get(field) or [0])[-1]
    return value if isinstance(value, int) else 0


def _read(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(content):
        tag, position = _varint_at(content, position)
        field, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint_at(content, position)
            yield field, value
            continue
        if kind == _BYTES:
            length, position = _varint_at(content, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"field {field} is of a kind that there is not: {kind}")
        if position + length > len(content):
            raise ValueError(f"field {field} ends behind the message")
        yield field, content[position : position + length]
        position += length


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _varint_at(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(content) or shift > 63:
            raise ValueError("a number does not end")
        part = content[position]
        value |= (part & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if part < 0x80:
            return value, position
