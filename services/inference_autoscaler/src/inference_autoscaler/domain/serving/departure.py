"""How a replica goes: for some seconds after it is told to, it serves on, until nobody sends it requests any more.

A pod that is to go is told to end at the same moment as those who send it requests are told that it will. Many servers hang up at
once when they get SIGTERM, and what was on its way to one then is lost: nobody can know whether it was read.
"""

from kube import Manifest

PAUSE_SECONDS = 5
"""Long enough for a busy cluster to be told everywhere that the replica goes."""
GRACE_SECONDS = 30
"""What a pod has until it is killed, where it does not say."""


def going_slowly(pod: Manifest) -> Manifest:
    """``pod`` with a pause before SIGTERM in each container that has no ``preStop`` of its own, as far as its grace goes."""
    grace = pod.get("terminationGracePeriodSeconds")
    pause = min(PAUSE_SECONDS, (GRACE_SECONDS if grace is None else int(grace)) - 1)
    return {**pod, "containers": [_paused(one, pause) for one in pod["containers"]]} if pause > 0 else pod


def _paused(container: Manifest, seconds: int) -> Manifest:
    hooks: Manifest = container.get("lifecycle") or {}
    if hooks.get("preStop"):
        return container
    return {**container, "lifecycle": {**hooks, "preStop": {"sleep": {"seconds": seconds}}}}
