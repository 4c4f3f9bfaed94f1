"""The operator's switch: while it is off nothing is placed and nobody is evicted. It is a ConfigMap, so it is a fact like any other."""

from dataclasses import dataclass

from kube.keys import Key, Manifest
from kube.objects import Object

NAMESPACE = "tidegate-system"
SWITCH = Key("ConfigMap", NAMESPACE, "scheduling")
_PAUSED = "true"


@dataclass(frozen=True, slots=True)
class Pause:
    """By whom and since when (RFC 3339) scheduling is paused, and why; "" for what was not said."""

    by: str
    since: str
    reason: str

    def __str__(self) -> str:
        since, by = f" since {self.since}" if self.since else "", f" by {self.by}" if self.by else ""
        return f"scheduling is paused{since}{by}" + (f": {self.reason}" if self.reason else "")


def pause_of(switch: Object | None) -> Pause | None:
    """The pause that ``switch`` says; None while scheduling goes on."""
    data = (switch.body.get("data") or {}) if switch is not None else {}
    if str(data.get("paused") or "").lower() != _PAUSED:
        return None
    return Pause(*(str(data.get(name) or "") for name in ("by", "since", "reason")))


def switched(pause: Pause | None, by: str, since: str) -> Manifest:
    """The switch as it is to be: off by ``pause``; where that is None, on again, by whom and since when."""
    told = pause or Pause(by, since, "")
    data = {"paused": str(pause is not None).lower(), "by": told.by, "since": told.since, "reason": told.reason}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SWITCH.name, "namespace": SWITCH.namespace},
        "data": data,
    }
