"""The invariant of gangs: one that has not started holds nothing; one that has started and lost members may go on."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kube import Object, Store
from testing.scenarios.membership import GANG_MINIMUM, TASK, group_object, group_of, mark, node_of, phase_of, pods_of

GangName = tuple[str, str]


@dataclass(slots=True)
class GangWatch:
    """Which gangs were seen whole, and which members they had when they were looked at last."""

    _started: set[GangName] = field(default_factory=set)
    _members: dict[str, tuple[GangName, str]] = field(default_factory=dict)
    """By uid, the gang and the name of every pod that was bound."""

    def started_by(self, pods: Iterable[Object]) -> None:
        """These pods were given as running, so their gangs have started."""
        self._started |= {(pod.namespace, group_of(pod)) for pod in pods if group_of(pod)}

    def check(self, store: Store, evicted: set[tuple[str, str]]) -> list[str]:
        """The gangs of which only a part is bound although they never were whole, in words."""
        pods: dict[GangName, list[Object]] = {}
        for pod in pods_of(store):
            if group_of(pod):
                pods.setdefault((pod.namespace, group_of(pod)), []).append(pod)
        lost = self._losers(pods, evicted)
        found = [fault for gang, members in pods.items() if (fault := self._partial(gang, members, store, lost))]
        self._started.intersection_update(pods)
        self._members = {pod.uid: (gang, pod.name) for gang, members in pods.items() for pod in members if node_of(pod)}
        return found

    def _losers(self, pods: dict[GangName, list[Object]], evicted: set[tuple[str, str]]) -> set[GangName]:
        """The gangs that lost a bound member since they were looked at last."""
        there = {pod.uid for members in pods.values() for pod in members}
        gone = {gang for uid, (gang, _) in self._members.items() if uid not in there}
        back = {gang for gang, members in pods.items() for pod in members if (pod.namespace, pod.name) in evicted}
        ended = {gang for gang, members in pods.items() for pod in members if node_of(pod) and not _counts(pod)}
        return gone | back | ended

    def _partial(self, gang: GangName, members: list[Object], store: Store, lost: set[GangName]) -> str:
        bound = [pod for pod in members if node_of(pod) and _counts(pod)]
        missing = _missing(gang, members, bound, store)
        if not bound:
            self._started.discard(gang)
        elif not missing or gang in lost:
            self._started.add(gang)
        if not missing or not bound or gang in self._started:
            return ""
        return f"gang {gang[1]} is bound in part ({', '.join(pod.name for pod in bound[:5])}): {missing}"


def _counts(pod: Object) -> bool:
    """Whether a bound pod counts for its gang's minimum: running or succeeded, neither failed nor going."""
    return phase_of(pod) == "Succeeded" or (phase_of(pod) != "Failed" and not pod.deleting)


def _missing(gang: GangName, members: list[Object], bound: list[Object], store: Store) -> str:
    """What the gang lacks to be whole, in words; "" when nothing."""
    group = group_object(store, *gang)
    spec = group.spec if group else {}
    minimum = int(spec.get("minMember") or mark(members[0], GANG_MINIMUM) or 0)
    if len(bound) < minimum:
        return f"{len(bound)} of at least {minimum} members"
    roles = Counter(mark(pod, TASK) for pod in bound)
    for role, least in sorted((spec.get("minTaskMember") or {}).items()):
        if roles[role] < int(least):
            return f"{roles[role]} of at least {least} members of role {role}"
    return ""
