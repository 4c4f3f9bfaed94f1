"""``runtimePatches``: what others (Kueue, for instance) lay over the template of a TrainJob's runtime, in their order."""

from typing import Any

from kube import Manifest


def patched(template: Manifest, patches: list[Manifest]) -> Manifest:
    """The JobSet template with every manager's patch laid over it."""
    for patch in patches:
        wanted = ((patch.get("trainingRuntimeSpec") or {}).get("template")) or {}
        template = overlaid(template, wanted)
    return template


def overlaid(base: Manifest, patch: Manifest) -> Manifest:
    """``base`` with ``patch`` over it: mappings merge, lists of named things merge by name, other lists grow."""
    result = dict(base)
    for name, value in patch.items():
        before = result.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            result[name] = overlaid(before, value)
        elif isinstance(value, list) and isinstance(before, list):
            result[name] = _joined(before, value)
        elif value is not None:
            result[name] = value
    return result


def _joined(before: list[Any], more: list[Any]) -> list[Any]:
    named = {item["name"]: item for item in more if isinstance(item, dict) and "name" in item}
    merged = [_over(item, named) for item in before]
    names = {item.get("name") for item in before if isinstance(item, dict)}
    added = [item for item in more if not (isinstance(item, dict) and item.get("name") in names and "name" in item)]
    return merged + [item for item in added if item not in merged]


def _over(item: Any, named: dict[str, Manifest]) -> Any:
    patch = named.get(item.get("name") or "") if isinstance(item, dict) else None
    return overlaid(item, patch) if patch else item
