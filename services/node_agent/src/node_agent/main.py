"""Wiring: settings → agent → its links to the bus → process."""

import socket
from dataclasses import dataclass
from pathlib import Path

from chassis.process import Context, Parts, run
from chassis.settings import ServiceSettings
from node_agent.agent import Agent
from node_agent.bus_link import BusUpstream, beat, follow_assignments, serve_logs
from node_agent.settings import AgentSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``node`` is the name of the node, this machine's if it is empty. ``inventory`` is a file that declares what it has.

    With ``drain_on_stop`` the pods end with the agent; without it they go on, and the next agent takes them up.
    """

    node: str = ""
    inventory: Path | None = None
    allow_root: bool = False
    enforce: bool = True
    isolate: bool = True
    drain_on_stop: bool = False


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    node = settings.node or socket.gethostname().lower()
    agent_settings = AgentSettings(
        node=node,
        data_dir=settings.data_dir / "node",
        inventory_file=settings.inventory,
        allow_root=settings.allow_root,
        enforce=settings.enforce,
        isolate=settings.isolate,
    )
    agent = Agent(agent_settings, BusUpstream(context.bus, node), context.clock.now)
    context.measures.watch("pods", "Pods of which something runs, or is to run yet.", lambda: len(agent.alive()))
    return Parts(
        tasks={
            "agent": agent.run(),
            "assignments": follow_assignments(context.bus, agent),
            "heartbeat": beat(context.bus, node),
            "logs": serve_logs(context.bus, agent),
        },
        stopping=(agent.drain,) if settings.drain_on_stop else (),
    )


def main() -> None:
    """Run the service until it is told to stop."""
    run("node_agent", Settings, build)


if __name__ == "__main__":
    main()
