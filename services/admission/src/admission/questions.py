"""Questions that another service owns the answer to: passed on over the bus, answered in words."""

import orjson

from bus import Bus, BusError
from kube import Key, Manifest, Object, Store
from resources import format_amounts
from tidegate import subjects

GROUP = "scheduling.k8s.io/group-name"
GROUP_KIND = "PodGroup.scheduling.volcano.sh"
QUEUE_KIND = "Queue.scheduling.volcano.sh"
ASKED = {
    "Pod": ("gang_scheduler", "explain"),
    GROUP_KIND: ("gang_scheduler", "explain"),
    QUEUE_KIND: ("queue_manager", "queue"),
}
"""Who is asked what about a kind; about jobs it is the job controller, and then who is asked about the job's group."""
_ALSO = {"nearestMiss": "nearest miss", "position": "position in the queue", "estimate": "estimate"}
JOBS = ("job_controller", "explain")
JOB_KINDS = frozenset(
    [
        "CronJob.batch.volcano.sh",
        "Job.batch.volcano.sh",
        "JobFlow.flow.volcano.sh",
        "JobSet.jobset.x-k8s.io",
        "TrainJob.trainer.kubeflow.org",
        *(f"{kind}.kubeflow.org" for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")),
    ]
)


class Questions:
    """Asks the owners and puts their answers together."""

    def __init__(self, bus: Bus, store: Store) -> None:
        self._bus, self._store = bus, store

    async def explain(self, item: Object) -> tuple[list[str], Manifest]:
        """Lines for people and the whole as data: why ``item`` waits, or where it went."""
        details: Manifest = {}
        lines: list[str] = []
        for about in self._subjects(item):
            service, name = ASKED.get(about.kind, JOBS)
            if (service, name) == JOBS and about.kind not in JOB_KINDS:
                continue
            answer = await self._ask(service, name, about.key)
            details[str(about.key)] = answer
            lines += _queue_lines(about, answer) if name == "queue" else _lines(about, service, answer)
        return lines, details

    def _subjects(self, item: Object) -> list[Object]:
        """The object itself, the groups that it owns or belongs to, and then its pods, those that wait before all."""
        found = [item]
        owned = self._below(item)
        found += [child for child in owned if child.kind == GROUP_KIND]
        if item.kind == "Pod" and item.annotations.get(GROUP):
            group = self._store.get(Key(GROUP_KIND, item.namespace, item.annotations[GROUP]))
            found += [group] if group is not None else []
        pods = [child for child in owned if child.kind == "Pod"]
        waiting = [pod for pod in pods if not pod.spec.get("nodeName")] or [pod for pod in pods if _troubles(pod)]
        return found + (waiting or pods)[:3]

    def _below(self, item: Object) -> list[Object]:
        """What an object owns, and what that owns."""
        owned = self._store.owned_by(item.uid)
        return owned + [deeper for child in owned if child.kind != "Pod" for deeper in self._below(child)]

    async def _ask(self, service: str, name: str, key: Key) -> Manifest:
        question = orjson.dumps({"kind": key.kind, "namespace": key.namespace, "name": key.name})
        try:
            answer = await self._bus.request(subjects.question(service, name), question, timeout=3.0)
        except BusError as error:
            return {"error": str(error)}
        content: Manifest = orjson.loads(answer)
        return content


def _lines(about: Object, service: str, answer: Manifest) -> list[str]:
    if "error" in answer:
        return [f"{about.key}: {_silence(service, answer)}"]
    verdict = answer.get("verdict") or answer.get("phase") or "Unknown"
    lines = [f"{about.key}: {verdict}" + (f" ({answer['rule']})" if answer.get("rule") else "")]
    if answer.get("message"):
        lines += [f"  {line}" for line in str(answer["message"]).splitlines()]
    need, have = answer.get("need") or {}, answer.get("have") or {}
    lines += [
        f"  {name}: needs {amount}, the most on one node is {have.get(name, 0)}"
        for name, amount in sorted(need.items())
    ]
    lines += _held(about)
    lines += [f"  {line}" for line in _troubles(about)]
    lines += [f"  {words}: {answer[name]}" for name, words in _ALSO.items() if answer.get(name)]
    return lines


def _silence(service: str, answer: Manifest) -> str:
    """Why there is no answer: nobody is there, or who is there failed."""
    said = str(answer["error"])
    away = "nobody answers" in said or "no answer" in said
    return f"{service} does not answer just now" if away else f"{service} cannot answer: {said}"


def _held(about: Object) -> list[str]:
    """Why the queue has not let a group in, as the group's own conditions say."""
    conditions = about.status.get("conditions") or () if about.kind == GROUP_KIND else ()
    return [
        f"  {one['message']}" for one in conditions if one.get("type") == "Admitted" and one.get("status") == "False"
    ]


def _troubles(about: Object) -> list[str]:
    """What keeps the containers of a pod from running on its node, as the node says."""
    if about.kind != "Pod" or not about.spec.get("nodeName"):
        return []
    status = about.status
    lines = [f"{status['reason']}: {status.get('message') or 'no more is known'}"] if status.get("reason") else []
    for one in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = one.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("message"):
            lines.append(f"container {one.get('name')} waits ({waiting.get('reason')}): {waiting['message']}")
        elif ended.get("exitCode"):
            message = f": {ended['message']}" if ended.get("message") else ""
            lines.append(f"container {one.get('name')} ended with exit code {ended['exitCode']}{message}")
    return lines


def _queue_lines(about: Object, answer: Manifest) -> list[str]:
    if "error" in answer:
        return [f"{about.key}: {_silence('queue_manager', answer)}"]
    if answer.get("verdict") == "SetAside":
        return [f"{about.key}: SetAside", f"  {answer['message']}"]
    return [f"{about.key}: {about.status.get('state', 'Open')}"] + [
        f"  {what}: {_amounts(answer.get(what) or {})}" for what in ("request", "allocated", "deserved")
    ]


def _amounts(amounts: dict[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(format_amounts(amounts).items())) or "nothing"
