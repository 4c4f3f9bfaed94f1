"""From what is wanted of a revision to its size: bounds, the size at the start, and the way to zero."""

from dataclasses import dataclass

from inference_autoscaler.domain.knative.decider import Wish
from inference_autoscaler.domain.knative.scaling import Scaling
from kube import Manifest


@dataclass(slots=True)
class Life:
    """How far a revision is. Times are milliseconds, None where it has not come to that.

    ``started`` says that its initial size was reached once, ``active_since`` when it last had a pod that serves after it had none,
    ``idle_since`` since when nobody needs it.
    """

    started: bool = False
    active_since: int | None = None
    idle_since: int | None = None

    def rewind(self, now: int) -> None:
        """The time was set back to ``now``: nothing was later."""
        self.active_since = None if self.active_since is None else min(self.active_since, now)
        self.idle_since = None if self.idle_since is None else min(self.idle_since, now)

    def manifest(self) -> Manifest:
        """As it is written down."""
        return {"started": self.started, "active": self.active_since, "idle": self.idle_since}

    @classmethod
    def of(cls, told: Manifest) -> "Life":
        """As it was written down."""
        return cls(told["started"], told["active"], told["idle"])


def size(scaling: Scaling, found: Wish | None, life: Life, replicas: int, ready: int, now: int, reachable: bool) -> int:
    """The size of a revision that has ``replicas``, of which ``ready`` serve. ``reachable``: some share of the traffic is its."""
    minimum = scaling.minimum if reachable else 0
    if ready >= max(1, scaling.initial):
        life.started = True
    life.active_since = None if ready == 0 else life.active_since if life.active_since is not None else now
    wanted = _wanted(found, replicas, reachable)
    if reachable and not life.started:
        wanted = max(wanted, scaling.initial)
    wanted = max(wanted, minimum)
    if scaling.maximum:
        wanted = min(wanted, scaling.maximum)
    if wanted > 0 or replicas == 0:
        life.idle_since = None
        return wanted
    return _towards_zero(scaling, life, now, reachable)


def _wanted(found: Wish | None, replicas: int, reachable: bool) -> int:
    if found is not None:
        return found.pods
    return replicas if reachable else 0


def _towards_zero(scaling: Scaling, life: Life, now: int, reachable: bool) -> int:
    """One pod until it was active for a window, and then until nobody needed it for the time of idleness."""
    if not scaling.to_zero:
        return 1
    if not reachable:
        return 0
    if life.active_since is None or now - life.active_since < scaling.window_ms:
        life.idle_since = None
        return 1
    if life.idle_since is None:
        life.idle_since = now
    return 0 if now - life.idle_since >= scaling.idle_ms else 1
