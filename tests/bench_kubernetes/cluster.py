"""A cluster for a benchmark: a real API server with nodes that only exist, and the pods that are to be bound."""

import asyncio
import contextlib
import ssl
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "kubernetes"))

from control_plane import ControlPlane, control_plane, node
from lab_programs import NoLab, programs

__all__ = ["ControlPlane", "NoLab", "control_plane", "programs"]

CONNECTIONS = 64
PODS = "/api/v1/namespaces/default/pods"
Manifest = dict[str, Any]
GATES = "GenericWorkload=true,GangScheduling=true"
FLAGS = (
    f"--feature-gates={GATES}",
    "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    "--delete-collection-workers=32",
)
"""What the API server is started with: kube-scheduler's own gangs are not on by default."""


@dataclass(slots=True)
class Cluster:
    """Writes to the API server with many requests at a time. Open it by `opened`."""

    plane: ControlPlane
    session: aiohttp.ClientSession

    async def send(self, method: str, path: str, body: Manifest | None = None) -> Manifest:
        """The parsed answer. Raises RuntimeError for an error, but for what is there already or not any more."""
        data = None if body is None else orjson.dumps(body)
        async with self.session.request(method, self.plane.address + path, data=data) as response:
            content = await response.read()
            if response.status >= 300 and response.status not in (404, 409):
                raise RuntimeError(f"{method} {path}: {response.status} {content[:300].decode()}")
            found: Manifest = orjson.loads(content)
            return found

    async def create(self, objects: Iterable[tuple[str, Manifest]]) -> None:
        """Make objects, each given with the path of its collection, many at a time and begun in their order."""
        waiting = iter(objects)

        async def work() -> None:
            for path, body in waiting:
                await self.send("POST", path, body)

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))

    async def add_nodes(self, have: int, wanted: int) -> None:
        """Nodes of four CPUs up to the number ``wanted``."""
        await self.create(
            ("/api/v1/nodes", node(f"node-{number:05}", cpu="4", memory="32Gi")) for number in range(have, wanted)
        )

    async def clear(self, *collections: str) -> None:
        """Delete the objects of ``collections``, and all pods; returns when the pods are gone."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        for path in (*collections, "/api/v1/namespaces/default/events"):
            # What has a finalizer stays, for no controller runs here: names are not used twice.
            with contextlib.suppress(aiohttp.ClientError, RuntimeError):
                await self.send("DELETE", path, options)
        while (await self.send("GET", f"{PODS}?limit=1")).get("items"):
            # The server gives up after a minute, however far it came.
            with contextlib.suppress(aiohttp.ClientError, RuntimeError):
                await self.send("DELETE", PODS, options)


def pod(name: str, scheduler: str, **more: Any) -> Manifest:
    """A pod of a tenth of a CPU and half a gigabyte; ``more`` goes to its spec and, ``annotations``, to its metadata."""
    annotations = more.pop("annotations", None)
    requests = {"cpu": "100m", "memory": "500Mi"}
    spec = {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "image": "pause", "resources": {"requests": requests}}],
        **more,
    }
    metadata: Manifest = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def singles(prefix: str, count: int, scheduler: str) -> Sequence[tuple[str, Manifest]]:
    """Pods that stand alone."""
    return [(PODS, pod(f"{prefix}-{number}", scheduler)) for number in range(count)]


@asynccontextmanager
async def opened(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """The cluster of ``plane``."""
    context = ssl.create_default_context(cafile=str(plane.folder / "ca.crt"))
    headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0, ssl=context)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
        yield Cluster(plane, session)
