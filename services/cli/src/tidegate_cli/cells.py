"""What stands in single cells of a table: values at a path, ages, and the states of pods and nodes as kubectl says them."""

import re
from collections.abc import Iterable
from typing import Any

from kube import Manifest, parse_time

NONE = "<none>"
UNKNOWN = "<unknown>"
_STEP = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86400
_YEAR = 365 * _DAY


def dig(manifest: Manifest, path: str) -> Any:
    """What stands at a dotted path such as ``status.conditions[-1].type``; None where nothing does."""
    value: Any = manifest
    for name, index in _STEP.findall(path):
        if index:
            position = int(index)
            value = value[position] if isinstance(value, list) and -len(value) <= position < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return None
    return value


def text(value: Any, empty: str = "") -> str:
    """A value as a cell: ``empty`` where there is none, a list joined by commas."""
    if value is None or value == "" or value == [] or value == {}:
        return empty
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def pairs(values: dict[str, Any] | None) -> str:
    """Labels or a selector as ``a=b,c=d``."""
    return ",".join(f"{name}={value}" for name, value in sorted((values or {}).items())) or NONE


def span(seconds: int) -> str:
    """A length of time in the few units that matter: ``90s``, ``5m10s``, ``3h``, ``2d4h``, ``400d``, ``3y10d``."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", _SECOND, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    return _two(seconds, _YEAR, "y", _DAY, "d") if seconds < 8 * _YEAR else f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")


def since(moment: Any, now: int) -> str:
    """How long ago the RFC 3339 time ``moment`` was at ``now`` (ms); ``<unknown>`` where it is none."""
    try:
        return span((now - parse_time(moment)) // 1000) if isinstance(moment, str) else UNKNOWN
    except ValueError:
        return UNKNOWN


def age(manifest: Manifest, now: int) -> str:
    """How old an object is."""
    return since(dig(manifest, "metadata.creationTimestamp"), now)


def condition(manifest: Manifest, kind: str) -> Manifest:
    """The condition of that type; empty where there is none."""
    conditions = dig(manifest, "status.conditions") or []
    return next((one for one in conditions if one.get("type") == kind), {})


def newest_true(manifest: Manifest) -> str:
    """The type of the last condition that holds: the state of kinds without a phase. Empty where none holds."""
    conditions = dig(manifest, "status.conditions") or []
    return str(next((one.get("type") for one in reversed(conditions) if one.get("status", "True") == "True"), ""))


def pod_status(pod: Manifest) -> str:
    """Why a pod is in its state, in one word: what kubectl shows as STATUS."""
    status = pod.get("status") or {}
    if dig(pod, "metadata.deletionTimestamp"):
        return "Terminating"
    if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        return "SchedulingGated"
    for reason in _container_reasons(status.get("containerStatuses") or ()):
        return reason
    phase = str(status.get("reason") or status.get("phase") or "Pending")
    return {"Succeeded": "Completed", "Failed": "Error"}.get(phase, phase)


def _container_reasons(statuses: Iterable[Manifest]) -> Iterable[str]:
    for one in statuses:
        state = one.get("state") or {}
        ended = state.get("terminated") or {}
        if (state.get("waiting") or {}).get("reason"):
            yield str(state["waiting"]["reason"])
        elif ended.get("reason"):
            yield str(ended["reason"])
        elif ended:
            yield f"ExitCode:{ended.get('exitCode', 0)}" if ended.get("exitCode") else "Completed"


def pod_ready(pod: Manifest) -> str:
    """Ready containers of all: ``1/2``."""
    statuses = dig(pod, "status.containerStatuses") or []
    return f"{sum(bool(one.get('ready')) for one in statuses)}/{len(dig(pod, 'spec.containers') or ())}"


def pod_restarts(pod: Manifest) -> str:
    """Restarts of all containers."""
    return str(sum(int(one.get("restartCount", 0)) for one in dig(pod, "status.containerStatuses") or ()))


def node_status(node: Manifest) -> str:
    """``Ready`` or ``NotReady``, and whether the node takes no pods."""
    ready = {"True": "Ready", "False": "NotReady"}.get(condition(node, "Ready").get("status", ""), "Unknown")
    return ready + (",SchedulingDisabled" if dig(node, "spec.unschedulable") else "")


def node_roles(node: Manifest) -> str:
    """The roles that the node's labels name."""
    prefix = "node-role.kubernetes.io/"
    labels = dig(node, "metadata.labels") or {}
    return ",".join(sorted(name.removeprefix(prefix) for name in labels if name.startswith(prefix))) or NONE
