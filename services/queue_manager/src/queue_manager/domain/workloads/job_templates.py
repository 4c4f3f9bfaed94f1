"""The pods that a job will have, before they are there: the first pod template in its spec, whatever kind of job it is."""

from typing import Any

from kube import Event, Key, Manifest, Object
from kube.runtime_classes import RuntimeClasses
from queue_manager.domain.members.members import LOCAL_QUEUE
from queue_manager.domain.workloads.podset import PodSet, merged, podsets_of_job

Template = tuple[str, int, Manifest]
"""The role, how many pods it has, and what they are made of."""


class JobTemplates:
    """Remembers the pod specs of the jobs that are in a LocalQueue, by the uid of the job, with what ``classes`` add to them."""

    def __init__(self, classes: RuntimeClasses | None = None) -> None:
        self._classes = classes or RuntimeClasses()
        self._jobs: dict[Key, Object] = {}
        self._by_uid: dict[str, Manifest] = {}
        self._podsets: dict[str, tuple[PodSet, ...]] = {}
        self._parts: dict[str, list[Template]] = {}

    def fold(self, event: Event) -> None:
        """Take in a change of an object of any kind."""
        if LOCAL_QUEUE not in event.object.labels:
            return
        known = self._jobs.pop(event.key, None)
        if known is not None:
            self._by_uid.pop(known.uid, None)
            self._podsets.pop(known.uid, None)
            self._parts.pop(known.uid, None)
        if event.new is not None:
            self._read(event.new)

    def renew(self) -> None:
        """Runtime classes came, changed or went."""
        for item in self._jobs.values():
            self._read(item)

    def _read(self, item: Object) -> None:
        whole = self._classes.in_templates(item.spec)
        spec = first_template(whole)
        if spec is not None:
            self._jobs[item.key] = item
            self._by_uid[item.uid] = spec
            self._podsets[item.uid] = merged(podsets_of_job(whole))
            self._parts[item.uid] = templates_in(whole)

    def of(self, controller: Manifest | None) -> Manifest | None:
        """The pod spec of the job that an owner reference names; None where it is not known."""
        return self._by_uid.get(str(controller.get("uid"))) if controller else None

    def podsets_of(self, controller: Manifest | None) -> tuple[PodSet, ...]:
        """The pod sets of that job that ask for a place in a topology, as far as its templates tell."""
        return self._podsets.get(str(controller.get("uid")), ()) if controller else ()

    def parts_of(self, controller: Manifest | None) -> list[Template]:
        """The templates of the job that an owner reference names; empty where it is not known."""
        return self._parts.get(str(controller.get("uid")), []) if controller else []


def templates_in(part: Any, name: str = "main") -> list[Template]:
    """All templates somewhere in ``part``, in the order of the spec, under the names of the roles that they are of."""
    if isinstance(part, list):
        return [found for item in part for found in templates_in(item, _name_of(item) or name)]
    if not isinstance(part, dict):
        return []
    template = part.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(spec, dict) and "containers" in spec:
        count = part.get("replicas", part.get("parallelism", 1))
        return [(name, count if isinstance(count, int) else 1, spec)]
    return [found for key, item in part.items() for found in templates_in(item, _role(key, name))]


def _name_of(item: Any) -> str:
    return str(item.get("name") or "") if isinstance(item, dict) else ""


def _role(key: str, name: str) -> str:
    """A field in capitals is the name of a role: ``Master``, ``Worker``."""
    return key.lower() if key[:1].isupper() else name


def first_template(part: Any) -> Manifest | None:
    """The first pod spec in a template somewhere in ``part``, in the order of the spec."""
    if isinstance(part, dict):
        template = part.get("template")
        spec = template.get("spec") if isinstance(template, dict) else None
        if isinstance(spec, dict) and "containers" in spec:
            return spec
        return next((found for item in part.values() if (found := first_template(item)) is not None), None)
    if isinstance(part, list):
        return next((found for item in part if (found := first_template(item)) is not None), None)
    return None
