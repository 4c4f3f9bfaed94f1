"""What ``tidegate wait`` waits for. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from kube import Manifest
from tidegate_cli.cells import condition, dig, newest_true, text
from tidegate_cli.sorting import BadPath, field_path


class BadGoal(ValueError):
    """A text that is nothing to wait for."""


class Aim(StrEnum):
    """The kinds of goals."""

    CONDITION = "condition"
    PHASE = "phase"
    FIELD = "jsonpath"
    CREATE = "create"
    DELETE = "delete"


ENDED = frozenset(["completed", "complete", "succeeded", "succeed", "failed", "terminated"])
"""Phases that are the last of pods and of jobs of all kinds."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A state of an object: ``what`` (a condition's type, a phase, a path) is to be ``value``."""

    aim: Aim
    what: str = ""
    value: str = ""

    def is_met(self, manifest: Manifest | None) -> bool:
        """Whether an object is in the state; None is one that is not there."""
        if manifest is None:
            return self.aim is Aim.DELETE
        match self.aim:
            case Aim.CREATE:
                return True
            case Aim.DELETE:
                return False
            case Aim.CONDITION:
                return _status(manifest, self.what).lower() == self.value.lower()
            case Aim.PHASE:
                return phase(manifest).lower() == self.what.lower()
            case Aim.FIELD:
                found = dig(manifest, self.what)
                return text(found) == self.value if self.value else found is not None

    def is_past(self, manifest: Manifest) -> bool:
        """Whether an object has ended without being in the phase: it comes to no other one any more."""
        now = phase(manifest).lower()
        return self.aim is Aim.PHASE and now in ENDED and now != self.what.lower()

    def __str__(self) -> str:
        if self.aim in (Aim.CREATE, Aim.DELETE):
            return str(self.aim)
        return f"{self.aim}={self.what}" + (f"={self.value}" if self.value else "")


def parse_goal(word: str) -> Goal:
    """``condition=Ready``, ``condition=Ready=False``, ``phase=Running``, ``jsonpath={.status.x}=3``, ``create``, ``delete``.

    Raises BadGoal.
    """
    aim, _, rest = word.partition("=")
    if aim in ("create", "delete") and not rest:
        return Goal(Aim(aim))
    what, _, value = rest.partition("=")
    if aim == "condition" and what:
        return Goal(Aim.CONDITION, what, value or "True")
    if aim == "phase" and what and not value:
        return Goal(Aim.PHASE, what)
    if aim == "jsonpath" and what:
        return Goal(Aim.FIELD, _path(what.strip("'\"")), value.strip("'\""))
    raise BadGoal(
        f"{word!r} is nothing to wait for; write it as condition=Ready, phase=Running, jsonpath={{.status.x}}=3, create or delete"
    )


def phase(manifest: Manifest) -> str:
    """The phase that an object is in; of kinds without one, the newest condition that is true."""
    found = dig(manifest, "status.phase") or dig(manifest, "status.state.phase")
    if found:
        return str(found)
    return newest_true(manifest)


def _status(manifest: Manifest, kind: str) -> str:
    """The status of a condition, whose type may be written in any case; "" where there is none."""
    exact = condition(manifest, kind)
    conditions = [exact] if exact else dig(manifest, "status.conditions") or []
    found = next((one for one in conditions if str(one.get("type", "")).lower() == kind.lower()), {})
    return str(found.get("status", ""))


def _path(word: str) -> str:
    try:
        return field_path(word)
    except BadPath as error:
        raise BadGoal(str(error)) from None
