"""Which revision gets what share of the requests: KServe's canaries."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kube import Manifest

ALL = 100


@dataclass(frozen=True, slots=True)
class Rollout:
    """Names of revisions, "" where there is none. ``rolled_out`` had everything last, ``previous`` before that one.

    ``split`` is the percentage of each revision that has a share.
    """

    created: str = ""
    ready: str = ""
    rolled_out: str = ""
    previous: str = ""
    split: dict[str, int] = field(default_factory=dict)

    def next(self, newest: str, is_ready: bool, share: int | None, there: Collection[str]) -> "Rollout":
        """What becomes of it with the revision ``newest``, of which ``share`` percent are wanted; ``there`` are all revisions.

        A revision that was never ready gets nothing: until it is, everything stays. The first one gets everything.
        """
        if not is_ready and self.ready != newest:
            return Rollout(newest, self.ready, self.rolled_out, self.previous, self.split)
        stable = self.rolled_out if self.rolled_out != newest else self.previous
        if share is None or share >= ALL or stable not in there:
            previous = self.rolled_out if self.rolled_out != newest else self.previous
            return Rollout(newest, newest, newest, previous, {newest: ALL})
        shares = {newest: share, stable: ALL - share}
        split = {name: percent for name, percent in shares.items() if percent}
        return Rollout(newest, newest, self.rolled_out, self.previous, split)

    def given(self, serving: Mapping[str, int]) -> "Rollout":
        """As requests can be given: those of which no pod serves get nothing while another one's do.

        While none serves each keeps its share: it sleeps, or they all start.
        """
        awake = {name: percent for name, percent in self.split.items() if serving.get(name)}
        if not awake or len(awake) == len(self.split):
            return self
        (name,) = awake
        return Rollout(self.created, self.ready, self.rolled_out, self.previous, {name: ALL})

    def manifest(self, newest: str) -> Manifest:
        """As the status of a component tells it."""
        traffic = [
            {"revisionName": name, "percent": percent, "latestRevision": name == newest}
            for name, percent in sorted(self.split.items())
        ]
        named = {
            "latestCreatedRevision": self.created,
            "latestReadyRevision": self.ready,
            "latestRolledoutRevision": self.rolled_out,
            "previousRolledoutRevision": self.previous,
        }
        return {**{name: value for name, value in named.items() if value}, "traffic": traffic}

    @classmethod
    def of(cls, told: Manifest) -> "Rollout":
        """As the status of a component tells it."""
        names = ("latestCreatedRevision", "latestReadyRevision", "latestRolledoutRevision", "previousRolledoutRevision")
        split = {str(one["revisionName"]): int(one["percent"]) for one in told.get("traffic") or ()}
        created, ready, rolled_out, previous = (str(told.get(name) or "") for name in names)
        return cls(created, ready, rolled_out, previous, split)
