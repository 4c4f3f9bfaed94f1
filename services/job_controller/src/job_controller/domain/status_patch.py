"""The difference between the status that an object has and the one that it should have."""

from kube import Manifest


def changes(old: Manifest, new: Manifest) -> Manifest:
    """The merge patch that turns ``old`` into ``new``; empty when they are equal.

    Keys that ``new`` lacks are removed; of ``conditions`` only those that differ are named, as they merge by type.
    """
    patch: Manifest = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if value == before:
            continue
        if name == "conditions" and isinstance(value, list):
            patch[name] = [condition for condition in value if condition not in (before or [])]
        elif isinstance(value, dict) and isinstance(before, dict):
            patch[name] = changes(before, value)
        else:
            patch[name] = value
    return patch
