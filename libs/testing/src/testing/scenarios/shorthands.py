"""The short ways in which a scenario writes objects, and the full manifests that they stand for."""

from typing import Any

from kube import Manifest, merge
from kube.colocation import QOS_LABEL
from testing.scenarios.errors import ScenarioError
from testing.scenarios.fields import at, mapping, sequence, whole, word
from testing.scenarios.membership import GROUP_NAME, LOCAL_QUEUE_NAME, QUEUE_NAME, QUOTA_NAME
from testing.scenarios.refs import kinds_named, parse_ref
from testing.scenarios.scenario import Given

IMAGE = "busybox"

_POD_KEYS = frozenset(
    {"requests", "limits", "podGroup", "queue", "priority", "priorityClassName", "qos", "labels", "annotations"}
    | {"nodeSelector", "tolerations", "affinity", "schedulerName", "node", "owner", "simulate"}
)
_MANIFEST_KEYS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_COPIED_TO_SPEC = ("priority", "priorityClassName", "nodeSelector", "tolerations", "affinity", "schedulerName")
# In which queue a bare pod is depends on how the case queues: Volcano's by annotation, the others by a label.
_QUEUE_LABELS = {"elastic-quota": QUOTA_NAME, "cohort": LOCAL_QUEUE_NAME}


def expand(entry: Any, queueing: str = "") -> list[Given]:
    """The objects that one element of ``apply`` stands for; ``queueing`` is the policy's word for it."""
    manifest = mapping(entry)
    at("kind", word, manifest.get("kind"))
    return [_given(_completed(one), queueing) for one in repeated(manifest)]


def repeated(entry: Manifest) -> list[Manifest]:
    """``entry`` as often as its ``count`` says, ``{i}`` in each of its strings replaced; once where it has none."""
    if "count" not in entry:
        return [entry]
    rest = {name: value for name, value in entry.items() if name != "count"}
    return [numbered(rest, number) for number in range(at("count", whole, entry["count"]))]


def numbered(value: Any, number: int) -> Any:
    """``value`` with ``{i}`` replaced by ``number`` in every string of it."""
    if isinstance(value, str):
        return value.replace("{i}", str(number))
    if isinstance(value, dict):
        return {numbered(name, number): numbered(one, number) for name, one in value.items()}
    return [numbered(one, number) for one in value] if isinstance(value, list) else value


def _completed(manifest: Manifest) -> Manifest:
    """With the apiVersion that its kind is known by, and the namespace left as it is."""
    at("metadata", word, mapping(manifest.get("metadata")).get("name"))
    if manifest.get("apiVersion"):
        return manifest
    kinds = kinds_named(manifest["kind"])
    if not kinds:
        raise ScenarioError(f"kind {manifest['kind']!r} is not known here; give its apiVersion")
    return {"apiVersion": kinds[0].api_version, **manifest}


def _given(manifest: Manifest, queueing: str) -> Given:
    if manifest["kind"] != "Pod":
        return Given(manifest)
    mapping(manifest, _POD_KEYS | _MANIFEST_KEYS)
    owner = at("owner", parse_ref, manifest["owner"]) if "owner" in manifest else None
    return Given(_pod(manifest, queueing), manifest.get("node", ""), owner)


def _pod(short: Manifest, queueing: str) -> Manifest:
    spec = merge(mapping(short.get("spec")), {name: short[name] for name in _COPIED_TO_SPEC if name in short})
    spec["containers"] = _containers(short, spec)
    pod = {name: value for name, value in short.items() if name in _MANIFEST_KEYS}
    return {**pod, "metadata": _pod_metadata(short, queueing), "spec": spec}


def _pod_metadata(short: Manifest, queueing: str) -> Manifest:
    labels = {**mapping(short.get("labels"))}
    annotations = {**mapping(short.get("annotations"))}
    if "podGroup" in short:
        annotations[GROUP_NAME] = short["podGroup"]
    if "qos" in short:
        labels[QOS_LABEL] = short["qos"]
    if "queue" in short:
        label = _QUEUE_LABELS.get(queueing)
        (labels if label else annotations)[label or QUEUE_NAME] = short["queue"]
    for name, value in mapping(short.get("simulate")).items():
        annotations[f"simulate/{name}"] = str(value)
    parts = {"labels": labels, "annotations": annotations}
    return merge(short["metadata"], {name: part for name, part in parts.items() if part})


def _containers(short: Manifest, spec: Manifest) -> list[Manifest]:
    containers: list[Manifest] = sequence(spec.get("containers")) or [{"name": "main", "image": IMAGE}]
    asked = {name: mapping(short[name]) for name in ("requests", "limits") if short.get(name)}
    if asked:
        first = merge(containers[0], {"resources": asked})
        containers = [{**first, "resources": _filled(first["resources"])}, *containers[1:]]
    return containers


def _filled(resources: Manifest) -> Manifest:
    """Limits fill the requests that are left out; a request of an extended resource fills its limit."""
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    extended = {name: amount for name, amount in requests.items() if _is_extended(name)}
    limits = {**extended, **limits}
    return {name: part for name, part in (("requests", requests), ("limits", limits)) if part}


def _is_extended(resource: str) -> bool:
    """Whether Kubernetes calls it an extended resource: named under a domain that is not its own."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")
