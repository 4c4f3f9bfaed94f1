"""Label selectors and node selector terms: parsed once, matched against one object's labels or against all nodes at once."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gang_scheduler.domain.columns.node_labels import NodeLabels
from gang_scheduler.domain.columns.vectors import Mask, Slots


class Requirement(NamedTuple):
    """One condition on a label, with the operator of a Kubernetes selector (In, NotIn, Exists, DoesNotExist, Gt, Lt)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "In" if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case "Exists" | "DoesNotExist":
                return f"{self.key} {self.operator}"
            case _:
                return f"{self.key} {self.operator} [{', '.join(self.values)}]"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` satisfy the condition."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and _compares(value, self.operator, self.values)
        return False

    def mask(self, labels: NodeLabels, slots: Slots) -> Mask:
        """For each of the nodes ``slots`` whether its labels satisfy the condition."""
        column = labels.column(self.key)[slots]
        match self.operator:
            case "Exists":
                return np.not_equal(column, 0)
            case "DoesNotExist":
                return np.equal(column, 0)
            case "In":
                return self._among(labels, self.values)[column]
            case "NotIn":
                return ~self._among(labels, self.values)[column]
        fitting = [value for value in labels.values_of(self.key) if _compares(value, self.operator, self.values)]
        return self._among(labels, fitting)[column]

    def _among(self, labels: NodeLabels, values: Iterable[str]) -> Mask:
        """By the number of a label's value whether it is one of ``values``; not having the label is none."""
        found = np.zeros(len(labels.values_of(self.key)) + 1, np.bool_)
        found[labels.ids_of(self.key, values)] = True
        return found


Conjunction = tuple[Requirement, ...]


def _compares(value: str, operator: str, bounds: tuple[str, ...]) -> bool:
    try:
        left, right = int(value), int(bounds[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right if operator == "Lt" else False


def requirements(expressions: Any) -> Conjunction:
    """A list of matchExpressions."""
    return tuple(
        Requirement(
            str(item.get("key") or ""),
            str(item.get("operator") or ""),
            tuple(str(value) for value in item.get("values") or ()),
        )
        for item in expressions or ()
    )


def equalities(labels: Mapping[str, Any] | None) -> Conjunction:
    """A matchLabels map or nodeSelector, sorted by key."""
    return tuple(Requirement(key, "In", (str(value),)) for key, value in sorted((labels or {}).items()))


def label_selector(selector: Mapping[str, Any] | None) -> Conjunction | None:
    """A LabelSelector; None, which selects nothing, when there is none. An empty one selects everything."""
    if selector is None:
        return None
    return equalities(selector.get("matchLabels")) + requirements(selector.get("matchExpressions"))


def matches_all(conditions: Conjunction, labels: Mapping[str, str]) -> bool:
    """Whether ``labels`` satisfy every condition."""
    return all(condition.matches(labels) for condition in conditions)


def describe(conditions: Conjunction) -> str:
    """The conditions as a person would write them."""
    return ", ".join(str(condition) for condition in conditions)
