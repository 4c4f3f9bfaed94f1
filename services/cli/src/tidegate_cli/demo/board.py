"""What the demo's jobs and pods do, followed by a watch, and told in lines as it happens."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kube import Key, Manifest
from resources import parse_amounts
from tidegate.client import Change
from tidegate_cli.demo.cast import CAST, Act

GOOD_END = ("Completed", "Succeeded")
BAD_END = ("Failed", "Aborted", "Terminated")
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class PodView:
    """One pod. ``bound`` is the revision in which it got its node, 0 before."""

    uid: str
    phase: str = "Pending"
    bound: int = 0
    cpu_milli: int = 0

    @property
    def takes_room(self) -> bool:
        return self.bound > 0 and self.phase not in _ENDED


@dataclass(slots=True)
class JobView:
    """One job. Times are seconds since the demo began; -1 for what has not happened yet."""

    act: Act
    phase: str = ""
    pods: dict[str, PodView] = field(default_factory=dict)
    handed_in_at: float = -1.0
    placed_at: float = -1.0
    running_at: float = -1.0
    ended_at: float = -1.0
    replaced: list[str] = field(default_factory=list)
    beside: tuple[str, ...] = ()
    """The jobs that held room on the node when this one's pods got theirs."""

    @property
    def holds_room(self) -> bool:
        return any(pod.takes_room for pod in self.pods.values())

    @property
    def ended(self) -> bool:
        return self.phase in GOOD_END or self.phase in BAD_END

    @property
    def bound_in(self) -> set[int]:
        """The revisions in which its pods got their nodes; one only when they got them together."""
        return {pod.bound for pod in self.pods.values() if pod.bound}


@dataclass(slots=True)
class Board:
    """The state of the demo. ``cpu_milli`` is what the node has to give."""

    jobs: dict[Key, JobView] = field(default_factory=lambda: {act.key: JobView(act) for act in CAST})
    node: str = ""
    cpu_milli: int = 0
    failures: list[str] = field(default_factory=list)
    """How pods failed and jobs ended badly, in the words of whoever said so."""

    def job(self, act: Act) -> JobView:
        return self.jobs[act.key]

    @property
    def taken_milli(self) -> int:
        """The CPU that bound pods ask for."""
        return sum(pod.cpu_milli for job in self.jobs.values() for pod in job.pods.values() if pod.takes_room)

    def hand_in(self, act: Act, at: float) -> None:
        """The manifest of ``act`` was accepted."""
        self.job(act).handed_in_at = at

    def fold(self, change: Change, at: float) -> list[str]:
        """Take in one change; the lines that tell what is new in it."""
        manifest = change.manifest
        match manifest.get("kind"):
            case "Node":
                return self._fold_node(manifest)
            case "Pod":
                return self._fold_pod(change, at)
            case "Job" | "PyTorchJob":
                return self._fold_job(manifest, at)
            case _:
                return []

    def _fold_node(self, manifest: Manifest) -> list[str]:
        status = manifest.get("status") or {}
        known = self.cpu_milli
        self.node = str(manifest["metadata"]["name"])
        self.cpu_milli = parse_amounts(status.get("allocatable")).get("cpu", 0)
        if self.cpu_milli == known:
            return []
        return [f"node {self.node} has {cpus(self.cpu_milli)} CPUs to give"]

    def _fold_job(self, manifest: Manifest, at: float) -> list[str]:
        metadata = manifest["metadata"]
        named = (job for job in self.jobs.values() if job.act.key[1:] == (metadata["namespace"], metadata["name"]))
        job = next(named, None)
        if job is None or not job.act.key.kind.startswith(f"{manifest['kind']}."):
            return []
        before, job.phase = job.phase, phase_of(manifest)
        if job.phase == before or not job.ended:
            return []
        job.ended_at = at
        if job.phase not in BAD_END:
            return [f"{job.act.name}: {job.phase.lower()}"]
        return [self._failed(f"{job.act.name}: {job.phase.lower()}{_reason(manifest)}")]

    def _failed(self, line: str) -> str:
        self.failures.append(line)
        return line

    @property
    def has_failed(self) -> bool:
        """Whether a job has ended as it should not."""
        return any(job.phase in BAD_END for job in self.jobs.values())

    def _fold_pod(self, change: Change, at: float) -> list[str]:
        manifest = change.manifest
        job = self._owner(manifest)
        if job is None:
            return []
        metadata, status = manifest["metadata"], manifest.get("status") or {}
        name, uid = str(metadata["name"]), str(metadata["uid"])
        known = job.pods.get(name)
        if change.type == "deleted":
            return []
        lines = []
        if known is None or known.uid != uid:
            if known is not None:
                job.replaced.append(name)
                lines.append(f"{name}: a new pod takes its place, as the job's policy says")
            known = job.pods[name] = PodView(uid, cpu_milli=_cpu_of(manifest))
        before, known.phase = known.phase, str(status.get("phase") or "Pending")
        if manifest["spec"].get("nodeName") and not known.bound:
            known.bound = change.revision
            lines += self._bound(job, at)
        if known.phase == "Failed" != before:
            lines.append(self._failed(f"{name}: failed with {_end_of(status)}"))
        if known.phase == "Running" != before:
            lines += self._running(job, name, at)
        return lines

    def _bound(self, job: JobView, at: float) -> list[str]:
        bound = [pod for pod in job.pods.values() if pod.bound]
        if len(bound) < job.act.pods or job.placed_at >= 0:
            return []
        job.placed_at = at
        job.beside = tuple(other.act.name for other in self.jobs.values() if other is not job and other.holds_room)
        if len(job.bound_in) > 1:
            return [f"{job.act.name}: all {job.act.pods} pods have their node"]
        return [f"{job.act.name}: all {job.act.pods} pods got their node at once (revision {bound[0].bound})"]

    def _running(self, job: JobView, name: str, at: float) -> list[str]:
        if name in job.replaced:
            return [f"{name}: runs again"]
        if job.running_at >= 0 or sum(pod.phase == "Running" for pod in job.pods.values()) < job.act.pods:
            return []
        job.running_at = at
        return [f"{job.act.name}: all {job.act.pods} pods run"]

    def _owner(self, pod: Manifest) -> JobView | None:
        for owner in pod["metadata"].get("ownerReferences") or ():
            for job in self.jobs.values():
                same_kind = job.act.key.kind.startswith(f"{owner.get('kind')}.")
                if same_kind and owner.get("name") == job.act.name and owner.get("controller"):
                    return job
        return None


def phase_of(manifest: Manifest) -> str:
    """A job's phase: a Volcano Job's own, or the newest condition that holds of a Kubeflow job."""
    status = manifest.get("status") or {}
    if "state" in status:
        return str((status["state"] or {}).get("phase") or "")
    holding: Iterable[str] = (one["type"] for one in status.get("conditions") or () if one.get("status") == "True")
    return ["", *holding][-1]


def cpus(milli: int) -> str:
    """``5500`` → ``5.5``."""
    return f"{milli / 1000:g}"


def _reason(manifest: Manifest) -> str:
    status = manifest.get("status") or {}
    newest = (status.get("conditions") or [{}])[-1]
    message = (status.get("state") or newest).get("message")
    return f": {message}" if message else ""


def _end_of(status: Manifest) -> str:
    """``exit code 137``, with what the node says of it where it says more."""
    for one in status.get("containerStatuses") or ():
        ended = (one.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            message = f": {ended['message']}" if ended.get("message") else ""
            return f"exit code {ended['exitCode']}{message}"
    return str(status.get("message") or status.get("reason") or "no reason given")


def _cpu_of(manifest: Manifest) -> int:
    requests = ((one.get("resources") or {}).get("requests") for one in manifest["spec"].get("containers") or ())
    return sum(parse_amounts(one).get("cpu", 0) for one in requests)
