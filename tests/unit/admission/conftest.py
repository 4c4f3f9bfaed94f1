"""The manifests of the acceptance cases, for every test of admission that wants real ones."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.domain.admit import admit, admit_delete
from admission.domain.errors import Rejected
from kube import KINDS, Key, Manifest, Object, Store, from_manifest, key_of
from kube.kinds import PREFERRED

CASES = Path(__file__).resolve().parents[2] / "scenarios" / "cases"
BY_KIND = {info.kind: info for info in reversed(KINDS.values())} | {
    kind: KINDS[full] for kind, full in PREFERRED.items()
}
GROUP, QUEUE, QOS = "scheduling.k8s.io/group-name", "scheduling.volcano.sh/queue-name", "koordinator.sh/qosClass"
POD_SPEC = ("priority", "priorityClassName", "nodeSelector", "tolerations", "affinity", "schedulerName")
STEP = re.compile(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]]+)')


class CaseBook:
    """The case files, their manifests in full, and a look at what is stored."""

    paths = sorted(CASES.glob("*/*.yaml")) if CASES.is_dir() else []

    @staticmethod
    def steps(path: Path) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["steps"]
        return steps

    @staticmethod
    def manifests(step: dict[str, Any]) -> list[Manifest]:
        """What the step applies, written out; without what is of no kind that is served."""
        written = [expanded(one) for short in step.get("apply", []) for one in copies(short)]
        return [manifest for manifest in written if manifest["kind"] in BY_KIND]

    @staticmethod
    def find(store: Store, reference: str) -> Object | None:
        kind, *rest = reference.split("/")
        namespace, name = rest if len(rest) == 2 else ("default", rest[0])
        info = BY_KIND[kind]
        return store.get(Key(info.id, namespace if info.namespaced else "", name))

    @staticmethod
    def value_at(item: Object | None, path: str) -> Any:
        value: Any = item.manifest() if item else None
        for key, index, name in STEP.findall(path):
            if isinstance(value, list):
                value = value[int(index)]
            elif value is not None:
                value = value.get(key or name)
        return value


def copies(thing: Manifest) -> Iterator[Manifest]:
    """The object as often as its ``count`` says, with ``{i}`` filled in."""
    count = thing.get("count")
    one = copy.deepcopy({name: value for name, value in thing.items() if name != "count"})
    if count is None:
        yield one
    else:
        yield from (filled(one, index) for index in range(count))


def filled(value: Any, index: int) -> Any:
    if isinstance(value, dict):
        return {name: filled(item, index) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, index) for item in value]
    return value.replace("{i}", str(index)) if isinstance(value, str) else value


def expanded(thing: Manifest) -> Manifest:
    """A shorthand as the manifest that it stands for."""
    if thing["kind"] == "Pod":
        return pod(thing)
    known = BY_KIND.get(thing["kind"])
    return thing if "apiVersion" in thing or known is None else {"apiVersion": known.api_version, **thing}


def pod(short: Manifest) -> Manifest:
    metadata = short["metadata"]
    labels = {**(metadata.get("labels") or {}), **(short.get("labels") or {})}
    annotations = {**(metadata.get("annotations") or {}), **(short.get("annotations") or {})}
    for key, target, name in (("qos", labels, QOS), ("podGroup", annotations, GROUP), ("queue", annotations, QUEUE)):
        if key in short:
            target[name] = short[key]
    spec = dict(short.get("spec") or {})
    spec.update({name: short[name] for name in POD_SPEC if name in short})
    if "node" in short:
        spec["nodeName"] = short["node"]
    resources = {name: short[name] for name in ("requests", "limits") if name in short}
    spec.setdefault("containers", [{"name": "main", "image": "busybox", "resources": resources}])
    whole = {**metadata, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": whole, "spec": spec}


class Gate:
    """Admission in front of a store: what is let in is stored, as the cluster would."""

    def __init__(self) -> None:
        self.store = Store()

    def apply(self, text: str | Manifest, **status: Any) -> Manifest:
        """Let the manifest in (YAML or ready) and store it, with ``status`` if the cluster said something about it."""
        manifest = yaml.safe_load(text) if isinstance(text, str) else text
        key = key_of(manifest)
        old = self.store.get(key)
        admitted = admit(manifest, old, self.store)
        item = from_manifest(admitted.manifest, uid=old.uid if old else f"uid-{len(self.store.objects)}")
        self.store.put(item.changed(status={**item.status, **status}) if status else item)
        self.warnings = admitted.warnings
        return admitted.manifest

    def wrong(self, text: str | Manifest) -> dict[str, str]:
        """The rule by path of everything that is wrong with the manifest; empty if it is let in. Nothing is stored."""
        manifest = yaml.safe_load(text) if isinstance(text, str) else text
        try:
            admit(manifest, self.store.get(key_of(manifest)), self.store)
        except Rejected as refused:
            return {error.path: f"{error.value}: {error.rule}" for error in refused.errors}
        return {}

    def keeps(self, reference: str) -> str:
        """Why the object may not be deleted; empty if it may."""
        item = CaseBook.find(self.store, reference)
        assert item is not None
        try:
            admit_delete(item, self.store)
        except Rejected as refused:
            return str(refused)
        return ""


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="session")
def book() -> CaseBook:
    return CaseBook()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", [pytest.param(path, id=path.stem) for path in CaseBook.paths])
