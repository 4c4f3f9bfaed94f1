"""Records as JSON: what the agent writes to a pod's folder, and reads again after its own restart."""

from dataclasses import asdict
from typing import Any

from node_agent.domain.backoff import Backoff
from node_agent.domain.records import (
    ContainerRecord,
    Halt,
    PodRecord,
    ProbeState,
    Process,
    Stage,
    Stop,
    Termination,
)


def encode(record: PodRecord) -> dict[str, Any]:
    """``record`` as plain JSON data; of probes only whether they pass, so that a result like the last changes nothing."""
    data = asdict(record)
    for container in data["containers"].values():
        container["probes"] = {kind: state["passed"] for kind, state in container["probes"].items()}
    return data


def decode(data: dict[str, Any]) -> PodRecord:
    """The record that ``encode`` wrote. Questions that were open (a probe, a hook) are asked anew."""
    given = dict(data)
    given["containers"] = {name: _container(dict(one)) for name, one in data["containers"].items()}
    given["stop"] = Stop(**data["stop"]) if data["stop"] else None
    given["conditions"] = {name: (status, int(since)) for name, (status, since) in data["conditions"].items()}
    return PodRecord(**given)


def _container(data: dict[str, Any]) -> ContainerRecord:
    data["stage"], data["halt"] = Stage(data["stage"]), Halt(data["halt"])
    data["process"] = Process(**data["process"]) if data["process"] else None
    data["end"] = Termination(**data["end"]) if data["end"] else None
    data["last"] = Termination(**data["last"]) if data["last"] else None
    data["backoff"] = Backoff(**data["backoff"])
    data["probes"] = {kind: ProbeState(passed=passed) for kind, passed in data["probes"].items()}
    data["hooking"] = False
    return ContainerRecord(**data)
