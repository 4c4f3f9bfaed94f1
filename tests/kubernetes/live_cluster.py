"""A cluster as a scenario sees it: its objects as they change, a kubelet for nodes that are none, Tidegate's processes."""

import asyncio
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from control_plane import ControlPlane
from gang_runs import bus_of

from apiserver import Answer, Api, ApiRequest, load
from apiserver.api import STRATEGIC_PATCH
from chassis.fact_fold import FactFold
from chassis.fact_fold import load as load_facts
from cluster_gateway.domain.simulated_nodes import ended_status, running_status
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.kubernetes.gateway import WATCH
from cluster_gateway.kubernetes.reflector import Seen, Watched
from cluster_gateway.kubernetes.watching import Watching
from kube import KINDS, Key, Manifest, Object, Store, from_manifest, parse_duration, rfc3339
from tidegate import subjects

T = TypeVar("T")
TICKS = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS, LOOKS = 0.2, 3
"""Everything has settled after so many looks in a row that saw nothing happen."""
IDLE_TICKS = 0.03 * TICKS
"""CPU time that an idle system may take in one look, all processes together."""
LONGEST_SECONDS = 30.0
STORED_SECONDS = 5.0
UNWATCHED = frozenset({"Event", "Event.events.k8s.io", "Lease.coordination.k8s.io", "NodeMetric.slo.koordinator.sh"})
AT_ONCE = 32


def _nothing(kind: str, manifest: Manifest) -> bool:
    """Of the facts only their positions are wanted here."""
    return False


class LiveCluster:
    """Follows one API server in a thread of its own, and plays the kubelet of every node. Close it."""

    def __init__(self, plane: ControlPlane, data: Path) -> None:
        self._data = data
        self._changes: deque[Watched] = deque()
        self._heard = 0
        self._timers = 0
        self._asked: set[tuple[str, str]] = set()
        self._store = Store()
        self._written: dict[str, int] = {}
        self._facts = FactFold(_nothing)
        self.evicted: list[tuple[str, str]] = []
        self.start_ms: int | None = 0
        self.termination_ms = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.do(self._open(plane))

    async def _open(self, plane: ControlPlane) -> None:
        self.api = await Api(await load(plane.kubeconfig)).__aenter__()
        kinds = frozenset(KINDS) - UNWATCHED
        self._watching = Watching(self.api, kinds, self._take, lambda _: None, lambda: None)
        self._task = asyncio.create_task(self._watching.run())
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._bus = await bus_of(self._pids(["cluster_gateway"])[0])
        self._facts, _ = await load_facts(self._bus.log(subjects.FACTS), interest=_nothing)
        self._reading = asyncio.create_task(self._follow_facts())
        while not self._watching.complete:
            await asyncio.sleep(0.05)

    def close(self) -> None:
        """Stop following."""
        self.do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for task in (self._task, self._reading):
            task.cancel()
        await asyncio.gather(self._task, self._reading, return_exceptions=True)
        await self._bus.close()
        await self.api.__aexit__()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, which runs in the thread that follows."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(60)

    # --- requests ------------------------------------------------------------------------------------------------

    def has(self, kind: str) -> bool:
        """Whether the cluster has ``kind``."""
        return kind in self._watching.served

    def served(self, kind: str) -> Served:
        """How the cluster serves ``kind``."""
        return self._watching.served[kind]

    def send(self, requests: Iterable[ApiRequest]) -> list[Answer]:
        """The answers, in the order of the requests; many are under way at one time."""

        async def one(request: ApiRequest) -> Answer:
            async with self._limit:
                answer = await self.api.send(request)
            self._note(answer)
            return answer

        async def all_of_them() -> list[Answer]:
            return await asyncio.gather(*map(one, requests))

        return self.do(all_of_them())

    def _note(self, answer: Answer) -> None:
        """How far its watch has to be read until an object that was written is known."""
        version = (answer.body.get("metadata") or {}).get("resourceVersion")
        if answer.ok and version:
            group = str(answer.body["apiVersion"]).rpartition("/")[0]
            kind = f"{answer.body['kind']}.{group}" if group else str(answer.body["kind"])
            self._written[kind] = max(self._written.get(kind, 0), int(version))

    def until_stored(self) -> None:
        """Wait until the gateway has stored as facts what was written: its watches have no order among one another."""
        until, positions = time.monotonic() + STORED_SECONDS, self._facts.positions
        written = {WATCH + kind: version for kind, version in self._written.items() if WATCH + kind in positions}
        while time.monotonic() < until and any(positions[name] < version for name, version in written.items()):
            time.sleep(0.01)
        self._written.clear()

    async def _follow_facts(self) -> None:
        log = self._bus.log(subjects.FACTS)
        async for entries in log.read(self._facts.revision):
            for entry in entries:
                self._facts.take(entry)

    # --- the facts -----------------------------------------------------------------------------------------------

    async def _take(self, seen: Seen) -> None:
        """What a watch tells of one kind."""
        if not isinstance(seen, Watched):
            return
        self._changes.append(seen)
        self._heard += 1
        if seen.kind == "Pod":
            for gone, pod in seen.changes:
                if not gone:
                    self._see(pod)

    def store(self) -> Store:
        """The objects, as far as they were heard of."""
        while self._changes:
            seen = self._changes.popleft()
            for gone, item in seen.changes:
                found = _object(seen.kind, item)
                if gone:
                    self._store.remove(found.key)
                else:
                    self._store.put(found)
        return self._store

    # --- the kubelet ---------------------------------------------------------------------------------------------

    def _see(self, pod: Manifest) -> None:
        metadata = pod["metadata"]
        uid, name = str(metadata["uid"]), (str(metadata["namespace"]), str(metadata["name"]))
        if metadata.get("deletionTimestamp"):
            if ("gone", uid) not in self._asked and _is_evicted(pod):
                self.evicted.append(name)
            self._later("gone", pod, "termination", self.termination_ms)
        elif pod["spec"].get("nodeName"):
            phase = (pod.get("status") or {}).get("phase")
            if phase == "Pending" and self.start_ms is not None:
                self._later("start", pod, "start", self.start_ms)
            if phase == "Running" and "simulate/duration" in (metadata.get("annotations") or {}):
                self._later("succeed", pod, "duration", 0)

    def _later(self, what: str, pod: Manifest, annotation: str, otherwise: int) -> None:
        key = (what, str(pod["metadata"]["uid"]))
        if key in self._asked:
            return
        self._asked.add(key)
        given = (pod["metadata"].get("annotations") or {}).get(f"simulate/{annotation}")
        seconds = (otherwise if given is None else parse_duration(str(given))) / 1000
        self._timers += 1
        self._loop.call_later(seconds, lambda: self._loop.create_task(self._report(what, _object("Pod", pod))))

    async def _report(self, what: str, pod: Object) -> None:
        self._timers -= 1
        path = self.served("Pod").path(pod.namespace, pod.name)
        if what == "gone":
            body: Manifest = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
            await self.api.send(ApiRequest("DELETE", path, body))
            return
        now = int(time.time() * 1000)
        names = [str(container["name"]) for container in pod.spec["containers"]]
        status = (
            running_status(names, True, rfc3339(now))
            if what == "start"
            else ended_status(pod, "Succeeded", 0, "Completed", now)
        )
        await self.api.send(status_patch(path, pod.uid, status))

    # --- Tidegate's processes ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until neither the API server nor Tidegate has anything left to do. Raises TimeoutError."""
        until, quiet = time.monotonic() + LONGEST_SECONDS, 0
        while quiet < LOOKS:
            before = self._heard, self._cpu()
            time.sleep(LOOK_SECONDS)
            still = before[0] == self._heard and self._cpu() - before[1] <= IDLE_TICKS and not self._timers
            quiet = quiet + 1 if still else 0
            if time.monotonic() > until:
                raise TimeoutError(f"the system did not settle within {LONGEST_SECONDS:g} s")

    def signal(self, services: Sequence[str], number: signal.Signals) -> None:
        """Send a signal to the processes of ``services``."""
        for pid in self._pids(services):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _pids(self, services: Sequence[str] = ()) -> list[int]:
        """The processes of Tidegate in this data folder, or those of some services."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    words = (entry / "cmdline").read_bytes().decode().split("\0")
                    named = [f"{service}.main" for service in services]
                    if str(self._data) in words and (not services or set(named) & set(words)):
                        found.append(int(entry.name))
        return found

    def _cpu(self) -> float:
        """Ticks of CPU that Tidegate's processes have used."""
        total = 0.0
        for pid in self._pids():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
        return total


def status_patch(path: str, uid: str, status: Manifest) -> ApiRequest:
    """What a kubelet says of a pod: conditions and containers are laid over those that are there."""
    return ApiRequest("PATCH", f"{path}/status", {"metadata": {"uid": uid}, "status": status}, content=STRATEGIC_PATCH)


def _object(kind: str, item: Manifest) -> Object:
    metadata = item["metadata"]
    group_version = KINDS[kind].api_version
    manifest = {"apiVersion": group_version, "kind": KINDS[kind].kind, **item}
    return from_manifest(manifest, uid=str(metadata["uid"]), revision=int(metadata["resourceVersion"]))


def _is_evicted(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "DisruptionTarget" and one["status"] == "True" for one in conditions)


def key_of_path(live: LiveCluster, key: Key) -> str:
    """The path of the object of ``key``."""
    return live.served(key.kind).path(key.namespace, key.name)
