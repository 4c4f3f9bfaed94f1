"""The network topology that a job, a partition or a group asks for."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.shapes import TEXT, WHOLE, closed, one_of, within
from kube import Manifest

NETWORK_TOPOLOGY = closed(mode=TEXT, highestTierAllowed=WHOLE, highestTierName=TEXT)


def default_topology(holder: Manifest) -> None:
    """A topology without a mode is a hard one."""
    if "networkTopology" in holder:
        holder["networkTopology"].setdefault("mode", "hard")


def check_topology(path: str, holder: Mapping[str, Any]) -> Iterable[FieldError]:
    """The mode is known and the highest tier is given by number or by name, not by both."""
    wanted = holder.get("networkTopology")
    if wanted is None:
        return
    where = f"{path}.networkTopology"
    yield from one_of(f"{where}.mode", wanted.get("mode"), ("hard", "soft"))
    yield from within(f"{where}.highestTierAllowed", wanted.get("highestTierAllowed"), 0)
    if "highestTierAllowed" in wanted and wanted.get("highestTierName"):
        rule = "give highestTierAllowed or highestTierName, not both"
        yield FieldError(f"{where}.highestTierName", wanted["highestTierName"], rule)
