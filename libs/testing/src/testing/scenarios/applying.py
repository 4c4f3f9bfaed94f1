"""What is added to an object when it is applied: what only the system's present state can tell."""

from collections.abc import Iterable
from typing import Any

from kube import Key, Manifest, Object, Store, UnknownKind, key_of, rfc3339
from kube.owners import owner_reference
from testing.scenarios.refs import Ref, parse_ref
from testing.scenarios.scenario import Apply, Given, Mismatch, Scenario

_KEPT_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")


def known_key(manifest: Manifest) -> Key | None:
    """The manifest's key; None where its kind is not one of Tidegate's, so that only the system can refuse it."""
    try:
        return key_of(manifest)
    except UnknownKind:
        return None


def batches(objects: Iterable[Given]) -> list[list[Given]]:
    """The objects in runs of those that can be applied at once: none refers to another of its run or replaces it."""
    runs: list[list[Given]] = []
    names: set[str] = set()
    for given in objects:
        name = title(given.manifest)
        alone = given.owner is not None or given.manifest["kind"] == "Command" or name in names
        if alone or not runs or bool(runs[-1][0].node) != bool(given.node):
            runs.append([])
            names.clear()
        runs[-1].append(given)
        names.add(name)
    return runs


def prepared(given: Given, store: Store) -> Manifest:
    """The manifest as a user sends it. Over an object that is there it replaces all but the metadata left out."""
    manifest = _owned(given, store)
    if manifest["kind"] == "Command":
        manifest = _aimed(manifest, store)
    key = known_key(manifest)
    existing = store.get(key) if key else None
    return _replacing(manifest, existing) if existing else manifest


def seeded(given: Given, store: Store, created: int) -> Manifest:
    """The manifest of a pod that was bound and ran already at ``created``, defaulted as admission would have."""
    manifest = _owned(given, store)
    spec = {**_default_priority(manifest["spec"], store), "nodeName": given.node}
    metadata = {**manifest["metadata"], "creationTimestamp": rfc3339(created)}
    return {**manifest, "metadata": metadata, "spec": spec, "status": _running_status(spec, created)}


def seeds(scenario: Scenario) -> int:
    """How many pods the scenario gives as running before its start."""
    applied = [step for step in scenario.steps if isinstance(step, Apply)]
    return sum(bool(given.node) for step in applied for given in step.objects)


def stored(manifest: Manifest, before: Object | None, store: Store) -> Mismatch | None:
    """What a refused object nevertheless left in the store."""
    key = known_key(manifest)
    after = store.get(key) if key else None
    unchanged = before is not None and after is not None and (before.body, before.labels) == (after.body, after.labels)
    if after is before or unchanged:
        return None
    return Mismatch(f"apply {title(manifest)}", "nothing of it stored", "it is stored" if after else "it is gone")


def title(manifest: Manifest) -> str:
    """A manifest as a report names it."""
    metadata = manifest["metadata"]
    return str(Ref(manifest["kind"], metadata.get("namespace") or "default", metadata["name"]))


def _owned(given: Given, store: Store) -> Manifest:
    if given.owner is None:
        return given.manifest
    namespace = given.manifest["metadata"].get("namespace") or "default"
    key = Ref(given.owner.kind, namespace, given.owner.name).key(store)
    owner = store.get(key)
    if owner is None:
        raise LookupError(f"{title(given.manifest)}: its owner {given.owner} does not exist")
    metadata = {**given.manifest["metadata"], "ownerReferences": [owner_reference(owner)]}
    return {**given.manifest, "metadata": metadata}


def _aimed(command: Manifest, store: Store) -> Manifest:
    """A Command whose target's uid is filled in."""
    target: dict[str, Any] = command.get("target") or {}
    if target.get("uid") or not target.get("kind") or not target.get("name"):
        return command
    namespace = command["metadata"].get("namespace") or "default"
    found = store.get(parse_ref(f"{target['kind']}/{namespace}/{target['name']}").key(store))
    return {**command, "target": {**target, "uid": found.uid}} if found else command


def _replacing(manifest: Manifest, existing: Object) -> Manifest:
    kept = {name: existing.metadata[name] for name in _KEPT_METADATA if name in existing.metadata}
    replaced = {**manifest, "metadata": {**kept, **manifest["metadata"]}}
    if existing.kind == "Pod" and existing.spec.get("nodeName"):
        replaced["spec"] = {"nodeName": existing.spec["nodeName"], **manifest["spec"]}
    return replaced


def _default_priority(spec: Manifest, store: Store) -> Manifest:
    classes = store.of_kind("PriorityClass.scheduling.k8s.io")
    named = spec.get("priorityClassName")
    found = next((one for key, one in classes.items() if key.name == named), None)
    if found is None or "priority" in spec:
        return spec
    return {**spec, "priority": found.body.get("value", 0)}


def _running_status(spec: Manifest, since: int) -> Manifest:
    moment = rfc3339(since)
    started = {"running": {"startedAt": moment}}
    return {
        "phase": "Running",
        "startTime": moment,
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": moment}
            for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [
            {"name": container["name"], "ready": True, "restartCount": 0, "state": started}
            for container in spec["containers"]
        ],
    }
