"""What is seen of a service while it is under load, once a second: replicas wanted and ready, and Triton's busy time of each."""

import asyncio
import json
import re
import time
from dataclasses import dataclass

from tests.bench.running_system import System
from tests.bench.serving.client import Client

from kube import Manifest
from tidegate.api.v1 import api_pb2

STEP = 1.0
_BUSY = re.compile(r"^nv_inference_compute_(?:input|infer|output)_duration_us\{[^}]*\} (\d+)", re.MULTILINE)
METRICS_PORT = 8002


@dataclass(frozen=True, slots=True)
class Look:
    """At one time, in seconds. ``busy`` is the part of the time since the look before that the instances of all replicas were busy."""

    second: float
    wanted: int
    ready: int
    busy: float


class Observer:
    """Looks at one InferenceService, each of whose replicas has so many instances of its model."""

    def __init__(self, system: System, name: str, instances: int) -> None:
        self._system, self._instances = system, instances
        self._selector = f"serving.kserve.io/inferenceservice={name}"
        self._clients: dict[str, Client] = {}
        self._before: dict[str, tuple[float, int]] = {}
        self.looks: list[Look] = []

    async def run(self, began: float) -> None:
        """Look once a second, for ever; seconds are counted from ``began`` of the monotonic clock."""
        while True:
            self.looks.append(await self.look(began))
            await asyncio.sleep(STEP - (time.monotonic() - began) % STEP)

    async def look(self, began: float) -> Look:
        deployments, pods = await asyncio.gather(self._list("deployments"), self._list("pods"))
        addresses = [str(pod["status"]["podIP"]) for pod in pods if _serves(pod)]
        wanted = sum(int(one["spec"].get("replicas", 1)) for one in deployments)
        busy = await asyncio.gather(*map(self._busy, addresses))
        found = [part for part in busy if part is not None]
        return Look(time.monotonic() - began, wanted, len(addresses), sum(found) / len(found) if found else 0.0)

    async def _list(self, kind: str) -> list[Manifest]:
        request = api_pb2.ListRequest(kind=kind, namespace="default", label_selector=self._selector)
        answer = await self._system.stub.List(request, metadata=self._system.metadata)
        return [json.loads(one) for one in answer.manifests]

    async def _busy(self, address: str) -> float | None:
        """The part of the time since it was asked last that its instances were busy; None where that is not known."""
        client = self._clients.setdefault(address, Client(f"{address}:{METRICS_PORT}", address, "/metrics"))
        try:
            _, body = await client.ask()
        except (OSError, EOFError):
            del self._clients[address]
            return None
        now, total = time.monotonic(), sum(map(int, _BUSY.findall(body.decode())))
        before = self._before.get(address)
        self._before[address] = (now, total)
        if before is None or total < before[1]:
            return None
        return (total - before[1]) / 1e6 / (now - before[0]) / self._instances


def _serves(pod: Manifest) -> bool:
    told = {one["type"]: one["status"] for one in pod.get("status", {}).get("conditions", ())}
    return told.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
