"""Wiring: settings → agent → its links to the bus → process."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chassis.process import Context, Parts, run
from chassis.settings import ServiceSettings
from kube import parse_duration
from node_agent.agent import Agent
from node_agent.bus_link import BusUpstream, beat, follow_assignments, serve_logs
from node_agent.colocating import Colocation
from node_agent.domain.programs import ProgramError
from node_agent.inventory.declared import InventoryError
from node_agent.inventory.machine import find_devices
from node_agent.kubelet.agent import KubeletAgent
from node_agent.kubelet.kept_look import KeptLook
from node_agent.kubelet.pod_groups import NoGroups, find_groups
from node_agent.nri.plugin import serve
from node_agent.program_list import default_folder, read_list
from node_agent.settings import AgentSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``node`` is the name of the node, this machine's if it is empty. ``inventory`` is a file that declares what it has.

    With ``drain_on_stop`` the pods end with the agent; without it they go on, and the next agent takes them up.

    With ``kubelet`` a kubelet runs the pods of the node, which then has to be named, and this measures them: every
    ``usage_interval`` it reads the control groups of the machine, which are mounted at ``cgroup_mount``, those of pods below
    ``cgroup_root`` (the kubelet's ``--cgroup-root``). ``identity`` is a file with a token of the pod in which this runs.
    ``nri_socket`` is that of the container runtime: what is decided about a container holds from its first instruction then.

    ``programs`` is a file that says which programs of this machine stand in for images, beside those that everybody has;
    ``environments`` the folder of those that `tidegate install` made. ``inference_gateway`` is the address at which such programs
    ask inference services, for nodes where the names of Services lead nowhere.
    """

    node: str = ""
    inventory: Path | None = None
    allow_root: bool = False
    enforce: bool = True
    isolate: bool = True
    drain_on_stop: bool = False
    programs: Path | None = None
    environments: Path | None = None
    inference_gateway: str = ""
    kubelet: bool = False
    usage_interval: str = ""
    identity: Path | None = None
    nri_socket: Path | None = None
    cgroup_mount: Path = Path("/sys/fs/cgroup")
    cgroup_root: str = "/"


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    if settings.kubelet:
        return _beside_kubelet(settings, context)
    node = settings.node or socket.gethostname().lower()
    try:
        programs = read_list(settings.programs).programs
    except ProgramError as error:
        raise SystemExit(str(error)) from None
    agent_settings = AgentSettings(
        node=node,
        data_dir=settings.data_dir / "node",
        inventory_file=settings.inventory,
        allow_root=settings.allow_root,
        enforce=settings.enforce,
        isolate=settings.isolate,
        programs=programs,
        environments=settings.environments or default_folder(),
        inference_gateway=settings.inference_gateway,
        usage_interval_ms=parse_duration(settings.usage_interval or "15s"),
    )
    agent = Agent(agent_settings, BusUpstream(context.bus, node), context.clock.now)
    context.measures.watch("pods", "Pods of which something runs, or is to run yet.", lambda: len(agent.alive()))
    _watch(context, lambda: agent.colocation)
    return Parts(
        tasks={
            "agent": agent.run(),
            "assignments": follow_assignments(context.bus, agent),
            "heartbeat": beat(context.bus, node),
            "logs": serve_logs(context.bus, agent),
        },
        stopping=(agent.drain,) if settings.drain_on_stop else (agent.give_back,),
    )


def _beside_kubelet(settings: Settings, context: Context) -> Parts:
    if not settings.node:
        raise SystemExit(
            "node: not given; beside a kubelet it is the name of the kubelet's Node (spec.nodeName of this pod)"
        )
    interval_ms = parse_duration(settings.usage_interval or "60s")
    agent_settings = AgentSettings(
        settings.node, settings.data_dir / "node", enforce=settings.enforce, usage_interval_ms=interval_ms
    )
    try:
        groups = find_groups(settings.cgroup_mount, settings.cgroup_root)
        devices = find_devices(settings.inventory)
    except (NoGroups, InventoryError) as error:
        raise SystemExit(str(error)) from None
    kept = KeptLook(agent_settings.data_dir / "usage.json")
    upstream = BusUpstream(context.bus, settings.node, settings.identity)
    agent = KubeletAgent(agent_settings, groups, devices, kept, upstream, context.clock.now)
    context.measures.watch("pods", "Pods that have a control group.", lambda: len(agent.pods))
    context.measures.watch(
        "containers", "Containers that have a control group, sandboxes included.",
        lambda: sum(len(pod.containers) for pod in agent.pods.values()),
    )  # fmt: skip
    _watch(context, lambda: agent.colocation)
    tasks = {"agent": agent.run(), "assignments": follow_assignments(context.bus, agent)}
    if settings.nri_socket is not None and settings.enforce:
        tasks["nri"] = serve(settings.nri_socket, agent.files_of)
    return Parts(tasks=tasks, stopping=(agent.give_back,))


def _watch(context: Context, keeper: Callable[[], Colocation | None]) -> None:
    """Show what is in force of the node's rules."""

    def read(figure: Callable[[Colocation], float]) -> Callable[[], float]:
        return lambda: figure(found) if (found := keeper()) is not None else 0.0

    watch = context.measures.watch
    watch("best_effort_cores", "CPU that best effort may use.", read(lambda one: one.allowed_milli / 1000))
    watch(
        "disturbed_pods", "Online pods that best effort disturbed in the last second.", read(lambda one: one.disturbed)
    )
    watch(
        "network_classes", "Classes of pods that have their part of the uplink.", read(lambda one: one.network_classes)
    )
    watch(
        "cycles_per_instruction", "Of online pods, on average, beside best effort; 0 where they are not counted.",
        read(lambda one: one.cycles_per_instruction),
    )  # fmt: skip
    watch("leaving_pods", "Pods that the node asks to be evicted.", read(lambda one: one.asked_to_leave))


def main() -> None:
    """Run the service until it is told to stop."""
    run("node_agent", Settings, build)


if __name__ == "__main__":
    main()
