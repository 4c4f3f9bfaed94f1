"""The whole system in one event loop, in virtual time: the same services, cores and gateway, on the bus in memory."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from typing import TypeVar

from admission.applier import Applier, Change, Result
from admission.view import View
from bus import MemoryBus
from chassis import Clock, Decider, LoopClock
from chassis.virtual_time import EPOCH_MS, VirtualLoop
from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.reports import node_evictions, node_state, node_usage, pod_status
from cluster_gateway.domain.simulated_nodes import SimulationSettings
from cluster_gateway.gateway import Gateway
from cluster_gateway.secrets import MemorySecrets
from cluster_gateway.settings import GatewaySettings
from gang_scheduler.domain.core import SERVED
from kube import Event, Key, Manifest, Object, Store, from_manifest, merge, parse_duration
from kube.node_evictions import Wish
from node_agent.domain.colocation.samples import Sample, Use
from resources import Amounts, subtract
from testing.scenarios.target import MetricSample, NodeUsage, PodReport
from testing.scenarios.waits import unexplained
from tidegate_cli.sim.evictions import Evictions
from tidegate_cli.sim.explanations import environment_of, message_of
from tidegate_cli.sim.inference import INFERENCE, inference_replicas, traffic_of
from tidegate_cli.sim.metric_readings import reading
from tidegate_cli.sim.node_agents import NodeAgents
from tidegate_cli.sim.pod_reports import reported_status
from tidegate_cli.sim.services import ROLES, Policy, decider
from tidegate_cli.sim.successors import undone

T = TypeVar("T")


class World:
    """A running system that a scenario drives. While the user and the nodes speak, nobody reacts; then all do."""

    def __init__(
        self,
        policy: Manifest | Policy,
        simulate: Manifest,
        seed: int = 0,
        bus: MemoryBus | None = None,
        start_ms: int = EPOCH_MS,
    ) -> None:
        """``bus`` may have logs already, from which everything starts then; ``start_ms`` is when time begins."""
        self._policy = policy if isinstance(policy, Policy) else Policy.of(policy)
        self._settings = GatewaySettings(simulation=_simulation(simulate))
        self._loop = VirtualLoop(start_ms)
        asyncio.set_event_loop(self._loop)
        self._bus, self._clock = bus or MemoryBus(), self._make_clock()
        self._uids = itertools.count(1)
        self._secrets = MemorySecrets()
        self._seed = seed
        self._gate = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._deciders: dict[str, Decider] = {}
        self._agents = NodeAgents(self._clock, self._ask_to_leave)
        try:
            self._start_everything()
        except BaseException:
            self.close()
            raise
        self._evictions = Evictions(self._bus)

    # --- what the harness asks for -------------------------------------------------------------------------------

    def now(self) -> int:
        return self._loop.now_ms

    def apply(self, manifests: Sequence[Manifest]) -> list[str | None]:
        results, _ = self._do(self._applier.apply("user", [Change(manifest) for manifest in manifests]))
        return [result.message if result.outcome == "refused" else None for result in results]

    def delete(self, key: Key) -> str | None:
        (result,), _ = self._do(self._applier.apply("user", [Change(delete=key)]))
        return result.message if result.outcome == "refused" else None

    def put_nodes(self, manifests: Sequence[Manifest]) -> None:
        self._enact(lambda cluster: _put_all(cluster, manifests))

    def seed(self, manifests: Sequence[Manifest]) -> None:
        self._enact(lambda cluster: _put_all(cluster, manifests))

    def patch_node(self, name: str, change: Manifest) -> None:
        def patch(cluster: Cluster) -> None:
            node = cluster.store.objects[Key("Node", "", name)]
            cluster.actor = f"node/{name}"
            rest = {part: value for part, value in change.items() if part not in ("metadata", "status")}
            metadata = merge(node.metadata, change.get("metadata") or {})
            node = cluster.replace(node, metadata, merge(node.body, rest))
            node_state(cluster, name, {}, change.get("status") or {})

        self._enact(patch)

    def delete_node(self, name: str) -> None:
        self._enact(lambda cluster: cluster.delete(cluster.store.objects[Key("Node", "", name)]))

    def set_pod(self, namespace: str, name: str, report: PodReport) -> None:
        key = Key("Pod", namespace, name)
        pod = self.store().get(key)
        node = pod.spec.get("nodeName") if pod is not None else None
        if pod is None or not node:
            raise LookupError(f"pod {namespace}/{name} is {'not bound' if pod else 'not there'}: no node reports of it")
        status = reported_status(pod, report, self.now())
        self._enact(lambda cluster: pod_status(cluster, node, key, pod.uid, status))

    def sample_usage(self, node: str, usage: NodeUsage) -> None:
        total = usage.total

        def sample(cluster: Cluster) -> None:
            nonlocal total
            found = {key: cluster.store.get(key) for key in (Key("Pod", *pod) for pod in usage.pods)}
            pods = {pod.uid: key for key, pod in found.items() if pod is not None}
            for key, pod in found.items():
                if pod is None:  # what is said of pods that are gone is dropped, from the whole too
                    total = subtract(total, usage.pods[key.namespace, key.name])
            used = {pod.uid: usage.pods[key.namespace, key.name] for key, pod in found.items() if pod is not None}
            samples = [_sample(uid, amounts, self.now()) for uid, amounts in {"": total, **used}.items()]
            node_usage(cluster, node, samples, pods, usage.system)
            self._agents.measured(node, _measured(total, used, self.now()))

        self._enact(sample)

    def sample_metrics(self, samples: Sequence[MetricSample]) -> None:
        refusals = [text for text in self.apply([reading(sample, self.now()) for sample in samples]) if text]
        if refusals:
            raise ValueError(f"a sample is refused: {refusals[0]}")

    def advance(self, ms: int) -> None:
        self.settle()
        self._loop.advance(ms)

    def settle(self) -> None:
        self._hold(False)
        self._loop.settle()
        self._check_tasks()

    def restart(self, roles: Sequence[str]) -> None:
        self.settle()
        for role in roles:
            if role == "all":
                self._restart_everything()
            else:
                if role == "agents":
                    self._agents.restart()
                for name in ROLES[role]:
                    self._stop(name)
                    self._start_decider(name)
        self.settle()

    def store(self) -> Store:
        return self._view.store

    def evictions(self) -> list[tuple[str, str]]:
        return self._evictions.ordered()

    def environment(self, pod: Object) -> dict[str, str]:
        return environment_of(pod, self.store(), self._secrets)

    def replicas(self, key: Key) -> int | None:
        found = self.store().get(key)
        if found is not None and found.kind == INFERENCE:
            return inference_replicas(found, self.store())
        return None if found is None else int(found.spec["replicas"]) if "replicas" in found.spec else None

    def traffic(self, key: Key) -> dict[str, int]:
        return traffic_of(self.store().get(key))

    def cgroup(self, node: str, path: str) -> str | None:
        return self._agents.cgroup(self.store(), node, path, self.now())

    def pod_message(self, pod: Object) -> str:
        return message_of(pod, self.store())

    @property
    def bus(self) -> MemoryBus:
        """The bus of this world, for those who read its logs."""
        return self._bus

    @property
    def view(self) -> View:
        """Admission's fold of the facts."""
        return self._view

    def apply_each(self, manifests: Sequence[Manifest]) -> list[Result]:
        """Like ``apply``, with all that admission has to say."""
        return self._do(self._applier.apply("user", [Change(manifest) for manifest in manifests]))[0]

    def do(self, work: Coroutine[object, object, T]) -> T:
        """Let one thing happen while nobody else reacts."""
        return self._do(work)

    def violations(self) -> list[str]:
        cores = {name: decider.term.core for name, decider in self._deciders.items() if decider.term is not None}
        found = [f"{name}: {text}" for name, core in sorted(cores.items()) for text in core.check()]
        found += [f"{one.service} set {one.source} aside: {one.error}" for one in self._bus.aside]
        found += self._evictions.useless(self.store())
        found += unexplained(self.store().of_kind("Pod").values(), self.store(), SERVED)
        return found + undone(self._deciders, self.now())

    def close(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.settle()
        self._loop.close()
        asyncio.set_event_loop(None)

    # --- the parts -----------------------------------------------------------------------------------------------

    def _make_clock(self) -> Clock:
        return LoopClock()

    def _start_gateway(self) -> None:
        self._gateway = Gateway(self._bus, self._clock, self._settings, self._secrets, self._new_uid)
        self._spawn("cluster_gateway", self._gateway.run())

    def _start_admission(self) -> None:
        self._view = View(self._bus, lambda folded: self._agents.hear(folded.events))
        self._applier = Applier(self._bus, self._view)
        self._spawn("view", self._view.run())
        self._spawn("applier", self._applier.run())

    def _start_decider(self, name: str) -> None:
        self._deciders[name] = decider(name, self._policy, self._bus, self._clock, self._gate)
        self._spawn(name, self._deciders[name].run())

    def _restart_everything(self) -> None:
        for name in list(self._tasks):
            self._stop(name)
        self._start_everything()

    def _start_everything(self) -> None:
        self._start_gateway()
        self._start_admission()
        for name in ROLES["all"]:
            self._start_decider(name)
        self.settle()
        self._agents.hear(Event(None, item) for item in self.store().objects.values())
        self._agents.restart()
        self._spawn("node_agents", self._agents.run())

    async def _ask_to_leave(self, node: str, wishes: tuple[Wish, ...]) -> None:
        """What an agent says in its report, as a fact."""
        listed = [asdict(wish) for wish in wishes]
        await self._gateway.enact(lambda cluster: node_evictions(cluster, node, listed))

    def _spawn(self, name: str, work: Coroutine[object, object, None]) -> None:
        self._tasks[name] = self._loop.create_task(work, name=name)

    def _stop(self, name: str) -> None:
        self._tasks.pop(name).cancel()
        self._loop.settle()

    def _new_uid(self) -> str:
        """Uids that are the same in each run of one seed."""
        return f"00000000-0000-4000-{self._seed % 0x10000:04x}-{next(self._uids):012x}"

    def _hold(self, held: bool) -> None:
        self._gateway.local.held = held
        if held:
            self._gate.clear()
        else:
            self._gate.set()
            self._gateway.wake()

    def _do(self, work: Coroutine[object, object, T]) -> T:
        """Let one thing happen while nobody else reacts."""
        self._hold(True)
        task = self._loop.create_task(work)
        self._loop.settle()
        self._check_tasks()
        if not task.done():
            task.cancel()
            raise TimeoutError("the system did not answer at this instant")
        return task.result()

    def _enact(self, action: Callable[[Cluster], object]) -> None:
        def enacted(cluster: Cluster) -> None:
            action(cluster)

        self._do(self._gateway.enact(enacted))

    def _check_tasks(self) -> None:
        for name, task in self._tasks.items():
            if task.done() and not task.cancelled():
                task.result()
                raise RuntimeError(f"{name} has ended")
        self._check_cores()

    def _check_cores(self) -> None:
        """A core that raises is contained by its shell; here it is an error all the same."""
        for name, one in self._deciders.items():
            report = one.quarantine.report(0)
            if report["trouble"] or report["aside"]:
                raise RuntimeError(f"{name} stumbles: {report}")


def open_world(policy: Manifest, simulate: Manifest, seed: int = 0) -> World:
    """A new world for one scenario."""
    return World(policy, simulate, seed)


def _simulation(simulate: Manifest) -> SimulationSettings:
    start = simulate.get("podStart", "0s")
    return SimulationSettings(
        pod_start_ms=None if start == "manual" else parse_duration(str(start)),
        termination_ms=parse_duration(str(simulate.get("termination", "0s"))),
        all_nodes=True,
    )


def _put_all(cluster: Cluster, manifests: Sequence[Manifest]) -> None:
    for manifest in manifests:
        _put(cluster, manifest)


def _put(cluster: Cluster, manifest: Manifest) -> None:
    item = from_manifest(manifest)
    cluster.actor = "cluster"
    old = cluster.store.get(item.key)
    if old is None:
        cluster.create(item.key, item.metadata, item.body, item.status)
    else:
        cluster.set_status(cluster.replace(old, {**old.metadata, **item.metadata}, item.body), item.status)


def _measured(total: Amounts, pods: Mapping[str, Amounts], now: int) -> Sample:
    used = {uid: Use(amounts.get("cpu", 0), amounts.get("memory", 0)) for uid, amounts in pods.items()}
    return Sample(now, Use(total.get("cpu", 0), total.get("memory", 0)), used)


def _sample(uid: str, amounts: Amounts, now: int) -> Manifest:
    return {"uid": uid, "at": now, "cpu_milli": amounts.get("cpu", 0), "memory_bytes": amounts.get("memory", 0)}
