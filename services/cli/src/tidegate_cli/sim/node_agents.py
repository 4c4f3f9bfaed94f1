"""The agents of simulated nodes: the real ones' decisions in virtual time, about samples that somebody hands in."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from chassis import Clock
from kube import Event, Key, Manifest, Object, Store
from kube.node_evictions import Wish
from kube.node_slo import NODE_SLO
from kube.pods import is_finished
from node_agent.domain.colocation.bursts import any_raised
from node_agent.domain.colocation.core import Enforcement, Kept, enforce
from node_agent.domain.colocation.evictions import current
from node_agent.domain.colocation.groups import CPU_MAX, CPU_SET, Group, Knobs, Tier
from node_agent.domain.colocation.machine import Machine, machine_of
from node_agent.domain.colocation.node_slo import NodeSlo, node_slo
from node_agent.domain.colocation.pods import CPU_BURST, NodePod, node_pod
from node_agent.domain.colocation.restoration import at_first, has_file, own_files, to_write
from node_agent.domain.colocation.samples import Sample, Use
from node_agent.domain.colocation.situation import Situation

ROUND_MS = 1_000
STALE_MS = 180_000
"""A sample of a scenario stands until the next one: it is too old when a NodeMetric would be."""

Ask = Callable[[str, tuple[Wish, ...]], Awaitable[None]]


@dataclass(slots=True)
class SimulatedAgent:
    """One node: what its agent knows, and what it wrote."""

    node: Object
    slo: NodeSlo
    objects: Mapping[str, Object]
    """The pods that are there now, by uid."""
    read: dict[str, tuple[Object, NodePod]] = field(default_factory=dict)
    sample: Sample | None = None
    kept: Kept = field(default_factory=Kept)
    written: Knobs = field(default_factory=dict)
    told: tuple[Wish, ...] = ()
    machine: Machine = field(init=False)
    looked: tuple[tuple[Sample, Mapping[str, NodePod], Knobs], Sample] | None = None
    """What the newest adjusted sample was made from, and it."""
    seen: tuple[tuple[Object, ...], dict[str, NodePod]] = ((), {})
    """``objects`` when they were read last, and what was read."""

    def __post_init__(self) -> None:
        self.hear(self.node)

    def hear(self, node: Object) -> None:
        """Take the newest version of the node."""
        self.node, self.machine = node, machine_of(node.manifest())

    @property
    def busy(self) -> bool:
        """Whether something has to be done as time passes."""
        return self.slo.thresholds.enabled or bool(self.told) or any_raised(self.pods.values(), self.slo.burst)

    @property
    def pods(self) -> dict[str, NodePod]:
        """The pods, each read once for every version of more than its status."""
        there = tuple(self.objects.values())
        if there != self.seen[0]:
            for uid, item in self.objects.items():
                known = self.read.get(uid)
                if known is None or known[0].metadata is not item.metadata or known[0].body is not item.body:
                    self.read[uid] = (item, node_pod(item.manifest()))
            self.read = {uid: self.read[uid] for uid in self.objects}
            self.seen = there, {uid: pod for uid, (_, pod) in self.read.items()}
        return self.seen[1]

    def round(self, now: int) -> tuple[Wish, ...]:
        """Decide and write; who is to leave."""
        pods = self.pods
        done = self._decide(now, pods)
        self.kept = done.kept
        self.written = to_write(done.knobs, self.written, pods, self.machine)
        return current(done.kept.asked, now)

    def text(self, group: Group, name: str, now: int) -> str | None:
        """What stands in a file; None where there is no such file."""
        pods, machine = self.pods, self.machine
        knobs = self.written if self.busy else self._decide(now, pods).knobs
        files = to_write(knobs, self.written, pods, machine)
        found = files.get(group, {}).get(name)
        if found is None and name == CPU_SET and group.pod in pods:  # it runs where its tier does
            found = files.get(Group(group.tier), {}).get(name)
        if found is not None:
            return found
        return at_first(group, name, "", pods, machine) if has_file(group, name, pods) else None

    def _decide(self, now: int, pods: Mapping[str, NodePod]) -> Enforcement:
        return enforce(Situation(now, self.slo, self.machine, pods, self._sample(pods), STALE_MS), self.kept)

    def _sample(self, pods: Mapping[str, NodePod]) -> Sample | None:
        """The sample, without what pods used that have gone since: it is what would be measured now."""
        if self.sample is None:
            return None
        basis = self.sample, pods, self.written
        if self.looked is None or self.looked[0] != basis:
            self.looked = basis, self._adjusted(self.sample, pods)
        return self.looked[1]

    def _adjusted(self, sample: Sample, pods: Mapping[str, NodePod]) -> Sample:
        gone = [use for uid, use in sample.pods.items() if uid not in pods]
        there = {uid: use for uid, use in sample.pods.items() if uid in pods}
        node = Use(
            sample.node.cpu_milli - sum(use.cpu_milli for use in gone),
            sample.node.memory_bytes - sum(use.memory_bytes for use in gone),
        )
        return replace(sample, node=node, pods=there, throttled=self._throttled(there, pods))

    def _throttled(self, used: Mapping[str, Use], pods: Mapping[str, NodePod]) -> frozenset[tuple[str, str]]:
        """The containers of the pods that use all of their quota."""
        found = set()
        for uid, use in used.items():
            pod = pods[uid]
            text = self.written.get(pod.group, {}).get(CPU_MAX) or own_files(pod.group, pods)[CPU_MAX]
            quota = text.split()[0]
            if quota.isdigit() and use.cpu_milli * 100 >= int(quota):
                found |= {(uid, one.name) for one in pod.containers}
        return frozenset(found)


class NodeAgents:
    """The agents of all nodes; ``ask`` is told which pods have to leave one."""

    def __init__(self, clock: Clock, ask: Ask) -> None:
        self._clock, self._ask = clock, ask
        self._nodes: dict[str, SimulatedAgent] = {}
        self._specs: dict[str, Manifest] = {}
        self._pods: dict[str, dict[str, Object]] = {}
        self._places: dict[Key, tuple[str, str]] = {}
        self._busy: dict[str, None] = {}
        self._work = asyncio.Event()

    def hear(self, events: Iterable[Event]) -> None:
        """Take what happened."""
        for event in events:
            kind = event.key.kind
            if kind == "Node":
                self._hear_node(event.key.name, event.new)
            elif kind == "Pod":
                self._hear_pod(event.key, event.new)
            elif kind == NODE_SLO:
                self._specs[event.key.name] = event.new.spec if event.new is not None else {}
                if event.key.name in self._nodes:
                    self._nodes[event.key.name].slo = self._slo(event.key.name)
                    self._wake(event.key.name)

    def measured(self, node: str, sample: Sample) -> None:
        """A node's newest sample."""
        if node in self._nodes:
            self._nodes[node].sample = sample

    def restart(self) -> None:
        """All agents begin anew, with what they keep in files."""
        for agent in self._nodes.values():
            agent.kept = Kept(agent.kept.held, agent.kept.raised, agent.kept.asked)

    def cgroup(self, store: Store, node: str, path: str, now: int) -> str | None:
        """The text of ``kubepods[/tier][/[namespace/]pod]/file`` on a node."""
        agent = self._nodes.get(node)
        root, *parts, name = path.split("/")
        if agent is None or root != "kubepods":
            return None
        tier = Tier(parts.pop(0)) if parts and parts[0] in set(Tier) else Tier.GUARANTEED
        if not parts:
            return agent.text(Group(tier), name, now)
        namespace, pod_name = parts if len(parts) == 2 else ("default", parts[0])
        pod = store.get(Key("Pod", namespace, pod_name))
        known = agent.pods.get(pod.uid) if pod is not None else None
        return agent.text(known.group, name, now) if known is not None and known.tier is tier else None

    async def run(self) -> None:
        """Decide every second, at whole ones, for ever; while no node has anything to do, wait for one that has."""
        while True:
            await self._work.wait()
            await asyncio.sleep((ROUND_MS - self._clock.now() % ROUND_MS) / 1000)
            for name in list(self._busy):
                agent = self._nodes.get(name)
                if agent is None:  # it went while another one was asked
                    continue
                wanted = agent.round(self._clock.now())
                if wanted != agent.told:
                    agent.told = wanted
                    await self._ask(name, wanted)
                if not agent.busy:  # what it had written is given back by now
                    self._busy.pop(name, None)
            if not self._busy:
                self._work.clear()

    def _hear_node(self, name: str, node: Object | None) -> None:
        if node is None:
            self._nodes.pop(name, None)
            self._busy.pop(name, None)
        elif name in self._nodes:
            self._nodes[name].hear(node)
        else:
            self._nodes[name] = SimulatedAgent(node, self._slo(name), self._pods.setdefault(name, {}))
            self._wake(name)

    def _hear_pod(self, key: Key, pod: Object | None) -> None:
        place, uid = self._places.pop(key, ("", ""))
        if place:
            self._pods[place].pop(uid, None)
        name = str(pod.spec.get("nodeName") or "") if pod is not None else ""
        if pod is not None and name and not is_finished(pod):
            self._places[key] = (name, pod.uid)
            self._pods.setdefault(name, {})[pod.uid] = pod
            if CPU_BURST in pod.annotations and name in self._nodes:
                self._wake(name)

    def _wake(self, name: str) -> None:
        if self._nodes[name].busy:
            self._busy[name] = None
            self._work.set()

    def _slo(self, node: str) -> NodeSlo:
        return node_slo(self._specs.get(node, {}))
