"""Probes of a JobFlow's steps: how far the tasks of a target have to be before the next step is made.

A core opens no socket. So the pods of a task that a later step asks about carry its HTTP and TCP probes as an annotation;
who runs a pod makes them, as it makes a container's own, and says of each in a condition of the pod whether it is answered.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence

from job_controller.domain.volcano.census import TASK
from job_controller.domain.volcano.children import phase_of
from job_controller.domain.volcano.spec import Task, read_spec
from kube import Manifest, Object, merge
from kube.pods import PROBES, has_condition
from kube.words import counted, verb

_REQUESTS = ("httpGetList", "tcpSocketList")


def what_is_missing(probe: Manifest, target: Object, pods: Sequence[Object]) -> str | None:
    """What the job ``target`` with its ``pods`` still lacks, in words; None when a step need not wait for it any more.

    A target that has completed is waited for no longer. Before, every task of it that the probe names has to be as far as
    the probe says, with all its pods. A target of which the probe names no task has to complete.
    """
    if phase_of(target) == "Completed":
        return None
    spec, said = read_spec(target), []
    named = [item for item in _items(probe) if spec.task(_task_name(item[1])) is not None]
    for kind, item in named:
        task = spec.task(_task_name(item))
        assert task is not None, "tasks that the target has not were left out"
        said.append(_phase_missing(item, task, target) if kind == "taskStatusList" else _answer(kind, item, task, pods))
    missing = [words for words in said if words]
    if named and not missing:
        return None
    return "; ".join([f"which is {phase_of(target)}", *missing])


def with_probes(spec: Manifest, probes: Iterable[Manifest]) -> Manifest:
    """The job ``spec`` with the HTTP and TCP probes of the steps that wait for it on the pods of the tasks they name."""
    asked: dict[str, dict[str, Manifest]] = {}
    for probe in probes:
        for kind, item in _items(probe):
            if kind in _REQUESTS:
                asked.setdefault(_task_name(item), {})[_condition(kind, item)] = _request(kind, item)
    tasks = [_marked(task, asked.get(str(task.get("name") or f"default{n}"))) for n, task in enumerate(_tasks(spec))]
    return {**spec, "tasks": tasks} if asked else spec


def _tasks(spec: Manifest) -> Sequence[Manifest]:
    return spec.get("tasks") or ()


def _marked(task: Manifest, requests: dict[str, Manifest] | None) -> Manifest:
    if not requests:
        return task
    annotations = {PROBES: json.dumps(requests, sort_keys=True)}
    return merge(task, {"template": {"metadata": {"annotations": annotations}}})


def _items(probe: Manifest) -> list[tuple[str, Manifest]]:
    return [(kind, item) for kind in (*_REQUESTS, "taskStatusList") for item in probe.get(kind) or ()]


def _task_name(item: Manifest) -> str:
    return str(item.get("taskName") or "")


def _phase_missing(item: Manifest, task: Task, target: Object) -> str:
    counts = (target.status.get("taskStatusCount") or {}).get(task.name) or {}
    have, wanted = (counts.get("phase") or {}).get(item.get("phase"), 0), max(1, task.replicas)
    return (
        ""
        if have >= wanted
        else f"{have} of {counted(wanted, 'pod')} of task {task.name} {verb(have)} {item.get('phase')}"
    )


def _answer(kind: str, item: Manifest, task: Task, pods: Sequence[Object]) -> str:
    name, wanted = _condition(kind, item), max(1, task.replicas)
    of_task = [pod for pod in pods if pod.labels.get(TASK) == task.name and _counts(pod)]
    silent = [pod for pod in of_task if not has_condition(pod.status, name)]
    have = len(of_task) - len(silent)
    if have >= wanted:
        return ""
    words = (
        f"{have} of {counted(wanted, 'pod')} of task {task.name} {verb(have, 'answers', 'answer')} {_words(kind, item)}"
    )
    return f"{words} ({silent[0].name}: {_said(silent[0], name)})" if silent else words


def _counts(pod: Object) -> bool:
    return not pod.deleting and pod.status.get("phase") != "Failed"


def _said(pod: Object, name: str) -> str:
    """What the node says of an open probe; before it says anything, where the pod stands."""
    if PROBES not in pod.annotations:
        return "it was made without this probe, so its job has to complete"
    conditions = pod.status.get("conditions") or ()
    said = next((str(one.get("message") or "") for one in conditions if one.get("type") == name), "")
    return said or f"it is {pod.status.get('phase') or 'Pending'}"


def _words(kind: str, item: Manifest) -> str:
    return (
        f"GET {item.get('path') or '/'} on port {item.get('port')}"
        if kind == "httpGetList"
        else f"port {item.get('port')}"
    )


def _condition(kind: str, item: Manifest) -> str:
    """The condition that says whether the request is answered: of a name that no other request has."""
    if kind == "tcpSocketList":
        return f"flow.volcano.sh/tcp-{item.get('port')}"
    written = json.dumps(_request(kind, item), sort_keys=True).encode()
    return f"flow.volcano.sh/http-{item.get('port')}-{hashlib.sha256(written).hexdigest()[:8]}"


def _request(kind: str, item: Manifest) -> Manifest:
    """The probe as a container's probe is written."""
    if kind == "tcpSocketList":
        return {"tcpSocket": {"port": item.get("port")}}
    get: Manifest = {"path": str(item.get("path") or "/"), "port": item.get("port")}
    header = item.get("httpHeader") or {}
    return {"httpGet": {**get, "httpHeaders": [header]} if header.get("name") else get}
