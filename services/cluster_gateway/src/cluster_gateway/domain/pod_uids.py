"""Pods by uid: nodes know them by nothing else."""

from collections.abc import Sequence

from kube import Event, Key, Object, runs

STATIC = "kubernetes.io/config.hash"
"""The annotation that has, of the mirror pod of a kubelet's static pod, the uid that the kubelet itself knows it by."""


class PodUids(dict[str, Key]):
    """The key of each pod by its uid, and of a mirror pod by that of its static pod too."""

    def fold(self, events: Sequence[Event]) -> None:
        """Pods came, went, or were made anew."""
        for run in runs(events):
            old, new = run[0].old, run[0].new
            if run[0].key.kind != "Pod" or (old is not None and new is not None and old.uid == new.uid):
                continue
            for event in run:
                for uid in _uids(event.old):
                    self.pop(uid, None)
                self.update(dict.fromkeys(_uids(event.new), event.key))


def _uids(pod: Object | None) -> tuple[str, ...]:
    if pod is None:
        return ()
    static = pod.annotations.get(STATIC)
    return (pod.uid, str(static)) if static else (pod.uid,)
