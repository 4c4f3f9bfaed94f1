"""Questions that another service owns the answer to: passed on over the bus, answered in words."""

import orjson

from admission.answer_lines import answer_lines, own_answer, readable, silence, troubles
from bus import Bus, BusError
from kube import Key, Manifest, Object, Store
from kube.keys import kind_id
from resources import format_amounts
from tidegate import subjects

GROUP = "scheduling.k8s.io/group-name"
GROUP_KIND = "PodGroup.scheduling.volcano.sh"
RESERVATION_KIND = "Reservation.scheduling.koordinator.sh"
QUEUE_KIND = "Queue.scheduling.volcano.sh"
QUOTA_KIND = "ElasticQuota.scheduling.sigs.k8s.io"
WORKLOAD_KIND = "Workload.kueue.x-k8s.io"
AUTOSCALER_KIND = "HorizontalPodAutoscaler.autoscaling"
SCALED_KIND = "ScaledObject.keda.sh"
SERVICE_KIND = "InferenceService.serving.kserve.io"
SCALERS = (AUTOSCALER_KIND, SCALED_KIND)
SIZES = ("inference_autoscaler", "explain")
SOURCE = "tidegate.dev/workload-of"
"""On a Workload that was made for a job: what queue_manager knows the job's work by, as ``Kind/name``."""
ASKED = {
    "Pod": ("gang_scheduler", "explain"),
    GROUP_KIND: ("gang_scheduler", "explain"),
    RESERVATION_KIND: ("gang_scheduler", "explain"),
    QUEUE_KIND: ("queue_manager", "queue"),
    QUOTA_KIND: ("queue_manager", "queue"),
    "Node": ("slo_controller", "explain"),
    "Job.batch": ("queue_manager", "explain"),
    WORKLOAD_KIND: ("queue_manager", "explain"),
    AUTOSCALER_KIND: SIZES,
    SCALED_KIND: SIZES,
    SERVICE_KIND: SIZES,
}
"""Who is asked what about a kind; about jobs it is the job controller, and then who is asked about the job's group."""
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
        said: set[str] = set()
        for about in self._subjects(item):
            service, name = ASKED.get(about.kind, JOBS)
            silent = (service, name) == JOBS and about.kind not in JOB_KINDS
            answer = {} if silent else await self._ask(service, name, _known_as(about))
            answer = answer or own_answer(about)
            if not answer:
                continue
            if about.kind in (GROUP_KIND, "Pod") and answer.get("verdict") == "NotLetIn":
                # Who has not been let in is told more by whoever keeps the gate.
                gate = await self._ask("queue_manager", "explain", about.key)
                answer |= gate if gate.get("verdict") == "NotLetIn" else {}
            details[str(about.key)] = answer
            told = str(answer.get("message") or "")
            if name == "queue":
                lines += _queue_lines(about, answer)
            elif about.kind == "Pod" and answer.get("verdict") == "Waiting" and told in said:
                lines.append(f"{about.key}: Waiting, for the same reason")
            else:
                lines += answer_lines(about, service, answer)
            said.add(told)
        return lines, details

    def _subjects(self, item: Object) -> list[Object]:
        """The object itself, what scales it, the groups that it owns or belongs to, and then its pods, those that wait before all."""
        found = [item]
        owned = self._below(item)
        found += [child for child in owned if child.kind == GROUP_KIND]
        found += self._scalers(item, owned)
        if item.kind == "Pod" and item.annotations.get(GROUP):
            group = self._store.get(Key(GROUP_KIND, item.namespace, item.annotations[GROUP]))
            found += [group] if group is not None else []
        pods = [child for child in owned if child.kind == "Pod"]
        waiting = [pod for pod in pods if not pod.spec.get("nodeName")] or [pod for pod in pods if troubles(pod)]
        return found + (waiting or pods)[:3]

    def _scalers(self, item: Object, owned: list[Object]) -> list[Object]:
        """The autoscalers that it made, and those that name it."""
        made = [child for child in owned if child.kind in SCALERS]
        naming = (
            other
            for kind in SCALERS
            for key, other in sorted(self._store.of_kind(kind).items())
            if key.namespace == item.namespace and _names(other, item)
        )
        return [*made, *(other for other in naming if other not in made)]

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


def _names(scaler: Object, item: Object) -> bool:
    """Whether ``item`` is what an autoscaler scales."""
    reference = scaler.spec.get("scaleTargetRef") or {}
    kind = kind_id(str(reference.get("apiVersion") or "apps/v1"), str(reference.get("kind") or "Deployment"))
    return (kind, reference.get("name")) == (item.kind, item.name)


def _known_as(about: Object) -> Key:
    """By what queue_manager knows an object that it is asked about."""
    if about.kind == QUOTA_KIND:
        return about.key._replace(name=f"quota/{about.name}")
    kind, slash, name = (
        about.annotations.get(SOURCE, "").partition("/") if about.kind == WORKLOAD_KIND else ("", "", "")
    )
    return Key(kind, about.namespace, name) if slash else about.key


def _queue_lines(about: Object, answer: Manifest) -> list[str]:
    if "error" in answer:
        return [f"{about.key}: {silence('queue_manager', answer)}"]
    if answer.get("verdict") == "SetAside":
        return [f"{about.key}: SetAside", f"  {answer['message']}"]
    state = f" {about.status.get('state', 'Open')}" if about.kind == QUEUE_KIND else ""
    return [f"{about.key}:{state}"] + [
        f"  {what}: {_amounts(answer.get(what) or {})}" for what in ("request", "allocated", "deserved")
    ]


def _amounts(amounts: dict[str, int]) -> str:
    told = sorted(format_amounts(amounts).items())
    return ", ".join(f"{name} {readable(amount)}" for name, amount in told) or "nothing"
