"""Strategic merge of a patch into a pod: mappings by key, lists of named things by their name, other lists whole."""

from typing import Any

# Field → the key by which elements of its list are told apart.
MERGE_KEYS = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
    "volumeMounts": "mountPath", "ports": "containerPort", "imagePullSecrets": "name", "hostAliases": "ip",
    "schedulingGates": "name", "topologySpreadConstraints": "topologyKey",
}  # fmt: skip


def merged(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """``old`` with ``patch`` laid over it; null removes a field, ``$patch: delete`` an element. Neither is changed."""
    result = dict(old)
    for name, value in patch.items():
        before = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merged(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list) and isinstance(before, list) and name in MERGE_KEYS:
            result[name] = _merged_list(before, value, MERGE_KEYS[name])
        else:
            result[name] = value
    return result


def _merged_list(old: list[Any], patch: list[Any], key: str) -> list[Any]:
    changes = {item.get(key): item for item in patch if isinstance(item, dict)}
    result = []
    for item in old:
        change = changes.pop(item.get(key), None) if isinstance(item, dict) else None
        if change is None:
            result.append(item)
        elif change.get("$patch") != "delete":
            result.append(merged(item, change))
    return result + [item for item in changes.values() if item.get("$patch") != "delete"]
