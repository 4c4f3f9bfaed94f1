"""One move of a plan."""

from dataclasses import dataclass, field

from kube import Object
from resources import Amounts


@dataclass(frozen=True, slots=True)
class Move:
    """``target`` is empty where any other node will do, and where the pod is not made again at its place.

    ``uses`` is what the pod uses where it is, as far as that is known.
    """

    pod: Object
    strategy: str
    message: str
    target: str = ""
    uses: Amounts = field(default_factory=dict)
