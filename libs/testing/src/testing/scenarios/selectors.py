"""Which pods a scenario means, where it does not name each of them."""

from dataclasses import dataclass, field
from typing import Any

from kube import Manifest, Object, Store
from testing.scenarios.errors import ScenarioError
from testing.scenarios.membership import group_of, jobs_of, owners_of, pods_of, queues_of
from testing.scenarios.refs import Ref, parse_ref, pod_names

SELECTORS = frozenset({"podGroup", "job", "queue", "labels", "namespace", "owner", "pods", "all"})


@dataclass(frozen=True, slots=True)
class Selector:
    """The pods for which everything holds that is given here."""

    pod_group: str | None = None
    job: str | None = None
    queue: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    namespace: str | None = None
    owner: Ref | None = None
    pods: tuple[tuple[str, str], ...] | None = None
    title: str = "all"

    def __str__(self) -> str:
        return self.title

    def find(self, store: Store) -> list[Object]:
        """The pods that are meant, by namespace and name."""
        return [pod for pod in pods_of(store) if self._means(pod, store)]

    def _means(self, pod: Object, store: Store) -> bool:
        return (
            (self.namespace is None or pod.namespace == self.namespace)
            and (self.pods is None or (pod.namespace, pod.name) in self.pods)
            and all(pod.labels.get(name) == value for name, value in self.labels.items())
            and (self.pod_group is None or _named(self.pod_group, pod.namespace, {group_of(pod)}))
            and (self.job is None or _named(self.job, pod.namespace, jobs_of(pod, store)))
            and (self.queue is None or self.queue in queues_of(pod, store))
            and (self.owner is None or not set(self.owner.candidates()).isdisjoint(owners_of(pod, store)))
        )


def _named(wanted: str, namespace: str, names: set[str]) -> bool:
    """``wanted`` is a name, meant in every namespace, or ``namespace/name``."""
    return wanted in names or any(f"{namespace}/{name}" == wanted for name in names)


def parse_selector(entry: Manifest) -> Selector:
    """The selector in ``entry``; keys that are no selectors are left to the caller."""
    given = {name: entry[name] for name in entry if name in SELECTORS}
    if not given:
        raise ScenarioError(f"it selects no pods; one of {', '.join(sorted(SELECTORS))} is needed")
    if given.get("all", True) is not True:
        raise ScenarioError("all: it is either true or left out")
    for name in ("podGroup", "job", "queue", "namespace"):
        if not isinstance(given.get(name, ""), str):
            raise ScenarioError(f"{name}: {given[name]!r} is no name")
    return Selector(
        given.get("podGroup"),
        given.get("job"),
        given.get("queue"),
        _labels(given.get("labels")),
        given.get("namespace"),
        parse_ref(given["owner"]) if "owner" in given else None,
        pod_names(given["pods"]) if "pods" in given else None,
        ", ".join(f"{name} {_short(value)}" for name, value in given.items() if name != "all") or "all",
    )


def _labels(labels: Any) -> dict[str, str]:
    if labels is not None and not isinstance(labels, dict):
        raise ScenarioError(f"labels: {labels!r} is no mapping")
    return {str(name): str(value) for name, value in (labels or {}).items()}


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={one}" for name, one in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
