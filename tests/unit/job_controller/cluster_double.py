"""A cluster that only pretends: it carries out decisions on a store, lets groups in, binds pods and lets time pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from job_controller.domain.core import JobCore
from kube import (
    Decision,
    Event,
    Key,
    Manifest,
    Mutation,
    Object,
    Outcome,
    Store,
    Verb,
    from_manifest,
    key_of,
    merge,
    parse_duration,
    parse_time,
    rfc3339,
)

START = parse_time("2026-01-01T00:00:00Z")
GROUP = "PodGroup.scheduling.volcano.sh"


@dataclass
class ClusterDouble:
    """One namespace ``default`` of a cluster with one node that has room for everything.

    ``pod_start``: ``auto`` (pods run and are ready once bound), ``manual`` (bound, then pending) or ``never`` (not bound).
    ``let_in``: whether PodGroups are let in by themselves. ``termination``: how long a bound pod takes to go.
    """

    pod_start: str = "auto"
    let_in: bool = True
    termination: str = "0s"
    make_core: Callable[[], JobCore] = JobCore
    now: int = START
    store: Store = field(default_factory=Store)
    log: list[tuple[list[Event], int]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    refuse: Callable[[Decision], str | None] = lambda decision: None
    _uids: int = 0
    _going: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.core = self.make_core()

    # What a user and the nodes do; after each the cluster runs until nothing is left to do at that instant.

    def apply(self, *texts: str | Manifest) -> None:
        """Create or replace objects, given as YAML or as manifests."""
        manifests = [item for text in texts for item in _manifests(text)]
        self._change([self._put(manifest) for manifest in manifests])
        self.settle()

    def delete(self, ref: str) -> None:
        self._change(self._delete(self.key(ref)))
        self.settle()

    def patch_status(self, ref: str, patch: Manifest) -> None:
        item = self.get(ref)
        self._change([self.store.put(item.changed(status=merge(item.status, patch)))])
        self.settle()

    def pods_become(self, **phases: Any) -> None:
        """What the node reports, at once: ``pods_become(**{"j-w-0": "Failed"})``, or a mapping with exitCode, restarts."""
        self._change(
            [self._report(name, word if isinstance(word, dict) else {"phase": word}) for name, word in phases.items()]
        )
        self.settle()

    def advance(self, duration: str) -> None:
        """Let time pass, stopping wherever something is due."""
        end = self.now + parse_duration(duration)
        while True:
            times = [at for at in (self.core.deadline(), *self._going.values()) if at is not None and at <= end]
            if not times:
                break
            self.now = max(self.now, min(times))
            gone = sorted(key for key, at in self._going.items() if at <= self.now)
            self._change([event for key in gone if (event := self._remove(key))])
            self.settle()
        self.now = end
        self.settle()

    def restart(self, replay: int = 0) -> None:
        """The controller starts with nothing in memory: from a snapshot that lacks the last ``replay`` change sets."""
        split = len(self.log) - replay
        past = Store()
        for events, _ in self.log[:split]:
            for event in events:
                past.remove(event.key) if event.new is None else past.put(event.new)
        self.core = self.make_core()
        self.core.fold([Event(None, item) for item in past.objects.values()], self.now)
        for events, now in self.log[split:]:
            self.core.fold(events, now)
        self.settle()

    # What is seen of it.

    def key(self, ref: str) -> Key:
        """``Pod/x``, ``Job/x`` (Volcano's unless a group is given as in ``Job.batch/x``)."""
        from kube import find_kind

        kind, _, name = ref.partition("/")
        return Key(find_kind(kind).id, "default", name)

    def get(self, ref: str) -> Object:
        found = self.store.get(self.key(ref))
        assert found is not None, f"{ref} is not there"
        return found

    def has(self, ref: str) -> bool:
        return self.store.get(self.key(ref)) is not None

    def pods(self) -> dict[str, str]:
        """Phase by name of the pods, with ``!`` behind those that are being deleted."""
        pods = sorted(self.store.of_kind("Pod").values(), key=lambda pod: pod.key)
        return {pod.name: str(pod.status.get("phase")) + ("!" if pod.deleting else "") for pod in pods}

    def phase(self, ref: str) -> str:
        return str((self.get(ref).status.get("state") or {}).get("phase") or "")

    def env(self, pod: str, container: int = 0) -> dict[str, Any]:
        """The environment of a container, references by ConfigMap resolved."""
        result: dict[str, Any] = {}
        for item in self.get(f"Pod/{pod}").spec["containers"][container].get("env") or ():
            source = (item.get("valueFrom") or {}).get("configMapKeyRef")
            if source:
                result[item["name"]] = self.get(f"ConfigMap/{source['name']}").body["data"][source["key"]]
            else:
                result[item["name"]] = item.get("value")
        return result

    def said(self) -> list[str]:
        """The names of all decisions so far."""
        return [decision.name for decision in self.decisions]

    # The machinery.

    def settle(self) -> None:
        for _ in range(200):
            decided = self.core.decide(self.now, frozenset())
            for decision in decided:
                self._carry_out(decision)
            moved = self._pretend()
            wrong = self.core.check()
            assert not wrong, wrong
            if not decided and not moved:
                return
        raise AssertionError(f"does not come to rest: {[decision.message for decision in self.decisions[-5:]]}")

    def _carry_out(self, decision: Decision) -> None:
        self.decisions.append(decision)
        identity = f"d{len(self.decisions)}"
        self.core.assume(identity, decision)
        subject = self.store.get(decision.subject)
        why = self.refuse(decision)
        if subject is None or subject.uid != decision.subject_uid:
            why = f"{decision.subject} is not there any more"
        if why is None:
            self._change([event for mutation in decision.mutations for event in self._mutate(mutation)])
        reasons = {} if why is None else {"": why}
        self.core.settle(Outcome(identity, decision.name, decision.subject, why is None, reasons))

    def _mutate(self, mutation: Mutation) -> Sequence[Event]:
        item = self.store.get(mutation.key)
        if mutation.verb is Verb.CREATE:
            assert mutation.manifest is not None
            return [self._put(mutation.manifest)] if item is None else []
        assert item is not None, f"{mutation.verb.name} of {mutation.key}, which is not there"
        assert not mutation.uid or mutation.uid == item.uid, f"{mutation.key} is another one by now"
        if mutation.verb is Verb.STATUS:
            return [self.store.put(item.changed(status=merge(item.status, mutation.patch or {})))]
        if mutation.verb is Verb.PATCH:
            patch = dict(mutation.patch or {})
            metadata = merge(item.metadata, patch.pop("metadata", {}))
            return [self.store.put(item.changed(metadata=metadata, body=merge(item.body, patch)))]
        assert mutation.verb in (Verb.DELETE, Verb.EVICT)
        return self._delete(mutation.key)

    def _put(self, manifest: Manifest) -> Event:
        old = self.store.get(key_of(manifest))
        if old is None:
            self._uids += 1
            item = from_manifest(manifest, uid=f"u{self._uids}")
            status = {"phase": "Pending"} if item.kind == "Pod" else item.status
            metadata = {**item.metadata, "creationTimestamp": rfc3339(self.now)}
            return self.store.put(item.changed(metadata=metadata, status=status))
        item = from_manifest(manifest, uid=old.uid)
        return self.store.put(item.changed(metadata={**old.metadata, **item.metadata}, status=old.status))

    def _delete(self, key: Key) -> list[Event]:
        item = self.store.get(key)
        if item is None or item.deleting:
            return []
        wait = parse_duration(self.termination)
        if (
            key.kind == "Pod"
            and item.spec.get("nodeName")
            and wait
            and item.status.get("phase") in ("Pending", "Running")
        ):
            self._going[key] = self.now + wait
            stamp = {**item.metadata, "deletionTimestamp": rfc3339(self.now)}
            return [self.store.put(item.changed(metadata=stamp))]
        event = self._remove(key)
        return [event] if event else []

    def _remove(self, key: Key) -> Event | None:
        self._going.pop(key, None)
        return self.store.remove(key)

    def _report(self, name: str, word: Manifest) -> Event:
        pod = self.get(f"Pod/{name}")
        status: Manifest = {"phase": word["phase"]}
        if "exitCode" in word:
            status["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": word["exitCode"]}}}]
        if "restarts" in word:
            status["containerStatuses"] = [{"name": "c", "restartCount": word["restarts"]}]
        ready = word.get("ready", word["phase"] == "Running" and self.pod_start == "auto")
        status["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
        return self.store.put(pod.changed(status=merge(pod.status, status)))

    def _pretend(self) -> bool:
        """What the other services and the garbage collection do; whether there was anything to do."""
        events: list[Event] = []
        for item in list(self.store.objects.values()):
            events += self._pretend_about(item)
        self._change(events)
        return bool(events)

    def _pretend_about(self, item: Object) -> list[Event]:
        owners = item.metadata.get("ownerReferences") or ()
        if owners and not any(found.uid == owner["uid"] for owner in owners for found in self._named(item, owner)):
            return self._delete(item.key)
        if item.kind == GROUP and self.let_in and item.status.get("phase") in (None, "", "Pending"):
            return [self.store.put(item.changed(status={**item.status, "phase": "Inqueue"}))]
        if item.kind == "Pod" and not item.spec.get("nodeName") and self.pod_start != "never" and not item.deleting:
            bound = item.changed(body=merge(item.body, {"spec": {"nodeName": "n"}}))
            if self.pod_start == "auto":
                ready = [{"type": "Ready", "status": "True"}]
                bound = bound.changed(status={**item.status, "phase": "Running", "conditions": ready})
            return [self.store.put(bound)]
        return []

    def _named(self, item: Object, owner: Manifest) -> list[Object]:
        from kube import kind_id

        found = self.store.get(Key(kind_id(owner["apiVersion"], owner["kind"]), item.namespace, owner["name"]))
        return [found] if found else []

    def _change(self, events: list[Event]) -> None:
        if events:
            self.log.append((events, self.now))
            self.core.fold(events, self.now)


def _manifests(text: str | Manifest) -> list[Manifest]:
    if isinstance(text, dict):
        return [text]
    return [_completed(item) for item in yaml.safe_load_all(text) if item]


def _completed(item: Manifest) -> Manifest:
    if "apiVersion" in item:
        return item
    from kube import find_kind

    return {"apiVersion": find_kind(item["kind"]).api_version, **item}


def volcano_job(name: str = "j", tasks: str = "{name: w, replicas: 2}", **spec: object) -> str:
    """The YAML of a Volcano Job; ``tasks`` are flow mappings without templates, between semicolons."""
    template = "template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"
    rows = "\n".join(f"    - {row.rstrip('}')}, {template}}}" for row in tasks.split("; "))
    more = "\n".join(f"  {key}: {value}" for key, value in spec.items())
    return f"kind: Job\nmetadata: {{name: {name}}}\nspec:\n  tasks:\n{rows}\n{more}"
