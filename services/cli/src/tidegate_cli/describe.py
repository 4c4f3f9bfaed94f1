"""An object as ``tidegate describe`` tells of it: what it is, what belongs to it, and what happened to it. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kube import Manifest, kind_id
from kube.pods import sound_pod_request
from resources import Amounts, add, format_amounts
from tidegate_cli.cells import NONE, condition, dig, node_status, pod_status, since, text
from tidegate_cli.columns import columns_of
from tidegate_cli.tables import grid

_HIDDEN_METADATA = ("name", "namespace", "labels", "annotations", "managedFields", "resourceVersion", "uid")
_TITLE_WIDTH = 19
_MAPS_OF_NAMES = frozenset(
    [
        "matchLabels",
        "labels",
        "annotations",
        "nodeSelector",
        "nodeLabels",
        "data",
        "plugins",
        "taskStatusCount",
        "minTaskMember",
    ]
)
"""Fields whose keys are names that people gave."""
_EMPTY: dict[type, str] = {dict: "{}", list: "[]"}
"""What is given and empty is told apart from what is not given: an empty selector selects all, none selects nothing."""
_ACRONYMS = {"Ip": "IP", "Cluster-ip": "Cluster-IP", "External-ip": "External-IP"}


def describe(manifest: Manifest, related: Sequence[Manifest], events: Sequence[Manifest], now: int) -> str:
    """The text about one object at the time ``now`` (ms).

    ``related`` are the objects to list with it: what it owns, or the pods of a node or queue. ``events`` are those about
    it, in any order.
    """
    parts = [_head(manifest, now)]
    body = _BODIES.get(kind_id(str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))), _any_body)
    parts += body(manifest, related)
    parts += [_related(related, str(manifest["metadata"].get("namespace", "")), now), _events(events, now)]
    return "\n".join(line for part in parts for line in part)


def _field(title: str, value: str) -> str:
    return f"{title + ':':<{_TITLE_WIDTH}}{value}".rstrip()


def _listed(title: str, values: Iterable[str]) -> list[str]:
    """A title with one value per line, all of them in line; ``<none>`` where there are none."""
    lines = list(values) or [NONE]
    return [_field(title, lines[0]), *(" " * _TITLE_WIDTH + line for line in lines[1:])]


def _head(manifest: Manifest, now: int) -> list[str]:
    metadata = manifest["metadata"]
    created = metadata.get("creationTimestamp")
    owner = next((one for one in metadata.get("ownerReferences") or () if one.get("controller")), None)
    lines = [_field("Name", metadata["name"])]
    if metadata.get("namespace"):
        lines.append(_field("Namespace", metadata["namespace"]))
    lines += _listed("Labels", _equations(metadata.get("labels"), "="))
    lines += _listed("Annotations", _equations(metadata.get("annotations"), ": "))
    lines += [_field("API Version", str(manifest.get("apiVersion", ""))), _field("Kind", str(manifest.get("kind", "")))]
    if created:
        lines.append(_field("Created", f"{created} ({since(created, now)} ago)"))
    if metadata.get("deletionTimestamp"):
        lines.append(
            _field("Deleted", f"{metadata['deletionTimestamp']} ({since(metadata['deletionTimestamp'], now)} ago)")
        )
    return lines + ([_field("Controlled By", f"{owner['kind']}/{owner['name']}")] if owner else [])


def _equations(values: Manifest | None, sign: str) -> list[str]:
    return [f"{name}{sign}{value}" for name, value in sorted((values or {}).items())]


def _pod_body(pod: Manifest, related: Sequence[Manifest]) -> list[list[str]]:
    scheduled = condition(pod, "PodScheduled")
    head = [
        _field("Node", text(dig(pod, "spec.nodeName"), NONE)),
        _field("Priority", text(dig(pod, "spec.priority"), "0")),
        _field("Status", pod_status(pod)),
        _field("Start Time", text(dig(pod, "status.startTime"), NONE)),
        _field("IP", text(dig(pod, "status.podIP"), NONE)),
    ]
    if scheduled.get("status") == "False":
        head.append(_field("Waits", " ".join(filter(None, (scheduled.get("reason"), scheduled.get("message"))))))
    statuses = {one.get("name"): one for one in dig(pod, "status.containerStatuses") or ()}
    containers = ["Containers:"]
    for container in dig(pod, "spec.containers") or ():
        containers += _container(container, statuses.get(container.get("name"), {}))
    return [head, containers, _conditions(pod)]


def _container(container: Manifest, status: Manifest) -> list[str]:
    state, details = next(iter((status.get("state") or {"waiting": {}}).items()))
    resources = container.get("resources") or {}
    lines = [
        f"  {container.get('name', '')}:",
        f"    Image:    {container.get('image', '')}",
        *(line for key in ("command", "args") for line in _words(container, key)),
        f"    State:    {state.capitalize()}",
    ]
    for key, title in (("reason", "Reason"), ("message", "Message"), ("exitCode", "Exit Code")):
        if key in (details or {}):
            lines.append(f"      {title}: {details[key]}")
    lines += [f"    Ready:    {status.get('ready', False)}", f"    Restarts: {status.get('restartCount', 0)}"]
    for name in ("limits", "requests"):
        if resources.get(name):
            lines += [f"    {name.capitalize()}:", *(f"      {line}" for line in _equations(resources[name], ": "))]
    env = [f"      {one.get('name')}: {_env_value(one)}" for one in container.get("env") or ()]
    return lines + (["    Environment:", *env] if env else [])


def _words(container: Manifest, key: str) -> list[str]:
    """A command or its arguments; a program that is written out in one is told by its first line."""
    words = [str(one).strip().splitlines() or [""] for one in container.get(key) or ()]
    line = " ".join(lines[0] + (" ..." if len(lines) > 1 else "") for lines in words)
    return [f"    {key.capitalize() + ':':<9} {line}"] if words else []


def _env_value(variable: Manifest) -> str:
    if "value" in variable:
        return str(variable["value"])
    kind, reference = next(iter((variable.get("valueFrom") or {"nothing": {}}).items()))
    named = " ".join(str(reference[key]) for key in ("name", "fieldPath", "resource", "key") if key in reference)
    return f"<set from {kind} {named}>"


def _node_body(node: Manifest, related: Sequence[Manifest]) -> list[list[str]]:
    taints = [f"{one.get('key')}={one.get('value', '')}:{one.get('effect')}" for one in dig(node, "spec.taints") or ()]
    pods = [
        one for one in related if one.get("kind") == "Pod" and dig(one, "status.phase") not in ("Succeeded", "Failed")
    ]
    return [
        [_field("Status", node_status(node)), *_listed("Taints", taints)],
        *(
            [title + ":", *_indented(dig(node, f"status.{title.lower()}") or {})]
            for title in ("Capacity", "Allocatable")
        ),
        ["Requested:", *_indented(dict(format_amounts(_requested(pods))))],
        _conditions(node),
    ]


def _requested(pods: Iterable[Manifest]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        total = add(total, sound_pod_request(pod.get("spec") or {}))
    return dict(sorted(total.items()))


def _any_body(manifest: Manifest, related: Sequence[Manifest]) -> list[list[str]]:
    """Everything but metadata, with titles instead of keys."""
    rest = {name: part for name, part in manifest.items() if name not in ("apiVersion", "kind", "metadata")}
    plain: Manifest = {**rest, "status": {k: v for k, v in (rest.get("status") or {}).items() if k != "conditions"}}
    return [
        _indented({name: part for name, part in plain.items() if part not in ({}, None)}, ""),
        _conditions(manifest),
    ]


def _secret_body(secret: Manifest, related: Sequence[Manifest]) -> list[list[str]]:
    """Names and sizes; values are nobody's to read over a shoulder."""
    sizes = [f"  {name}: {len(str(value))} characters" for name, value in sorted((secret.get("data") or {}).items())]
    return [[_field("Type", text(secret.get("type"), "Opaque")), "Data:", *sizes]]


def _indented(value: Any, indent: str = "  ", names: bool = False) -> list[str]:
    """A map, a line for each of its parts; with ``names`` its keys are names that people gave, and stay as they are."""
    lines: list[str] = []
    for name, part in value.items():
        title = f"{indent}{name if names else _titled(name)}:"
        if isinstance(part, dict) and part:
            lines += [title, *_indented(part, indent + "  ", name in _MAPS_OF_NAMES)]
        elif isinstance(part, list) and part:
            lines += [title, *(line for one in part for line in _element(one, indent + "  "))]
        else:
            lines += _scalar(title, part, indent)
    return lines


def _element(value: Any, indent: str) -> list[str]:
    if not isinstance(value, dict) or not value:
        return [f"{indent}- {text(value, NONE)}"]
    lines = _indented(value, indent + "  ")
    return [f"{indent}- {lines[0].lstrip()}", *lines[1:]]


def _scalar(title: str, value: Any, indent: str) -> list[str]:
    lines = text(value or _EMPTY.get(type(value), value), NONE).splitlines()
    return [f"{title} {lines[0]}"] if len(lines) == 1 else [title, *(f"{indent}  {line}" for line in lines)]


def _titled(key: str) -> str:
    """``minAvailable`` as ``Min Available``; names that are no words, such as resources, stay as they are."""
    if not key.isalnum() or key in ("cpu", "memory", "pods"):
        return key
    spaced = "".join(
        f" {letter}" if letter.isupper() and n and key[n - 1].islower() else letter for n, letter in enumerate(key)
    )
    return spaced[:1].upper() + spaced[1:]


def _conditions(manifest: Manifest) -> list[str]:
    conditions = dig(manifest, "status.conditions") or []
    if not conditions:
        return []
    if not isinstance(conditions, list):  # a JobFlow has a map of its jobs there
        return ["Conditions:", *_indented(conditions, names=True)]
    rows = [[text(one.get(key)) for key in ("type", "status", "reason", "message")] for one in conditions]
    return ["Conditions:", *(f"  {line}" for line in grid(["Type", "Status", "Reason", "Message"], rows, 2))]


def _related(related: Sequence[Manifest], home: str, now: int) -> list[str]:
    """Tables of ``related``, one for each kind; with the namespaces where they are not all that of the object, ``home``."""
    kinds: dict[str, list[Manifest]] = {}
    for manifest in related:
        kinds.setdefault(kind_id(str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))), []).append(
            manifest
        )
    lines: list[str] = []
    for kind, group in kinds.items():
        columns = columns_of(kind, wide=kind == "Pod")
        rows = [[str(one["metadata"]["name"]), *(column.read(one, now) for column in columns)] for one in group]
        titles = ["Name", *(_ACRONYMS.get(title, title) for title in (one.title.capitalize() for one in columns))]
        if len(places := {str(one["metadata"].get("namespace", "")) for one in group}) > 1 or places - {home, ""}:
            titles.insert(0, "Namespace")
            rows = [[str(one["metadata"].get("namespace", "")), *row] for one, row in zip(group, rows, strict=True)]
        lines += [f"{group[0].get('kind')}s:", *(f"  {line}" for line in grid(titles, rows, 2))]
    return lines


def _events(events: Sequence[Manifest], now: int) -> list[str]:
    if not events:
        return [_field("Events", NONE)]
    rows = [_event(one, now) for one in sorted(events, key=_moment)]
    return ["Events:", *(f"  {line}" for line in grid(["Type", "Reason", "Age", "From", "Message"], rows, 2))]


def _moment(event: Manifest) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or dig(event, "metadata.creationTimestamp") or "")


def _event(event: Manifest, now: int) -> list[str]:
    count = int(event.get("count") or 1)
    age = since(_moment(event) or None, now)
    if count > 1 and event.get("firstTimestamp"):
        age = f"{age} (x{count} over {since(event['firstTimestamp'], now)})"
    source = dig(event, "source.component") or event.get("reportingComponent") or event.get("reportingController")
    return [text(event.get("type"), "Normal"), text(event.get("reason")), age, text(source), text(event.get("message"))]


_BODIES: dict[str, Callable[[Manifest, Sequence[Manifest]], list[list[str]]]] = {
    "Pod": _pod_body,
    "Node": _node_body,
    "Secret": _secret_body,
}
