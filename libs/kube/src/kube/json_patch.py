"""JSON patches (RFC 6902): a list of operations on an object, done in order, all or none."""

from typing import Any

from kube.keys import Manifest


class BadPatch(ValueError):
    """A patch that cannot be read, or that does not fit the object; the text says which operation."""


def patched(manifest: Manifest, operations: Any) -> Manifest:
    """``manifest`` after all ``operations``; itself it stays as it is. Raises BadPatch."""
    if not isinstance(operations, list):
        raise BadPatch('a JSON patch is a list such as [{"op": "replace", "path": "/spec/replicas", "value": 3}]')
    result: Any = _copied(manifest)
    for number, operation in enumerate(operations, 1):
        try:
            result = _after(result, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise BadPatch(f"operation {number} ({_told(operation)}): {_why(error)}") from None
    if not isinstance(result, dict):
        raise BadPatch("the patch leaves no object")
    return result


def _after(document: Any, operation: Any) -> Any:
    kind, path = operation["op"], _path(operation["path"])
    match kind:
        case "add":
            return _put(document, path, _copied(operation["value"]), new=True)
        case "replace":
            _at(document, path)
            return _put(document, path, _copied(operation["value"]), new=False)
        case "remove":
            return _without(document, path)
        case "copy" | "move":
            source = _path(operation["from"])
            value = _copied(_at(document, source))
            rest = _without(document, source) if kind == "move" else document
            return _put(rest, path, value, new=True)
        case "test":
            found = _at(document, path)
            if found != operation["value"]:
                raise ValueError(f"there is {found!r}")
            return document
    raise ValueError("there are add, remove, replace, move, copy and test")


def _path(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(f"the path {text!r} does not begin with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _at(document: Any, path: list[str]) -> Any:
    for name in path:
        document = document[_place(document, name)]
    return document


def _place(holder: Any, name: str, *, end: bool = False) -> Any:
    """Where ``name`` points to in a mapping or list; ``end``: also behind the last element."""
    if not isinstance(holder, list):
        return name
    if end and name == "-":
        return len(holder)
    place = int(name)
    if not 0 <= place < len(holder) + end:
        raise IndexError(name)
    return place


def _put(document: Any, path: list[str], value: Any, *, new: bool) -> Any:
    if not path:
        return value
    holder = _at(document, path[:-1])
    place = _place(holder, path[-1], end=new)
    if new and isinstance(holder, list):
        holder.insert(place, value)
    else:
        holder[place] = value
    return document


def _without(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    holder = _at(document, path[:-1])
    del holder[_place(holder, path[-1])]
    return document


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _told(operation: Any) -> str:
    named = operation if isinstance(operation, dict) else {}
    return f"{named.get('op', 'no op')} {named.get('path', 'without a path')}"


def _why(error: Exception) -> str:
    if isinstance(error, KeyError | IndexError):
        return f"there is no {error.args[0]}"
    return (
        "it cannot be read, or its path leads through what is no mapping"
        if isinstance(error, TypeError)
        else str(error)
    )
