"""Which pods are meant: by namespace, by label, by priority."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from descheduler.domain.policy.arguments import known
from kube import Manifest, Object
from kube.selectors import matches


@dataclass(frozen=True, slots=True)
class Scope:
    """``include`` empty is every namespace but those of ``exclude``. A pod is meant if any of ``selectors`` takes it."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    selectors: tuple[Manifest, ...] = ()
    below_priority: int | None = None

    @classmethod
    def of(cls, namespaces: Any, selectors: Iterable[Any] = (), threshold: Any = None) -> "Scope":
        """Raises ValueError for keys that there are not."""
        given = namespaces or {}
        known(given, ("include", "exclude"), "a choice of namespaces")
        return cls(
            tuple(given.get("include") or ()),
            tuple(given.get("exclude") or ()),
            tuple(selector for selector in selectors if selector is not None),
            None if threshold is None else int(threshold["value"] if isinstance(threshold, dict) else threshold),
        )

    def obstacle(self, pod: Object, skipped: Collection[str] = ()) -> str:
        """Why the pod is not meant; empty when it is. ``skipped`` are the gates that are open, by upstream's names."""
        if self._is_outside(pod.namespace) and "Namespaces" not in skipped:
            return f"namespace {pod.namespace} is not among those that are looked at"
        selected = not self.selectors or any(matches(selector, pod.labels) for selector in self.selectors)
        if not selected and "LabelSelector" not in skipped:
            return "no selector takes its labels"
        priority, below = pod.spec.get("priority") or 0, self.below_priority
        if below is not None and priority >= below and "PriorityThreshold" not in skipped:
            return f"its priority {priority} is not below {below}"
        return ""

    def _is_outside(self, namespace: str) -> bool:
        return bool(self.include and namespace not in self.include) or namespace in self.exclude


EVERYTHING = Scope()
