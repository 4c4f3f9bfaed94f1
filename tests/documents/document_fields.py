"""Field by field what becomes of a manifest of the kinds that a cluster does not have by itself: made from admission's shapes."""

from collections.abc import Iterator
from dataclasses import dataclass

from document_kinds import BY_KIND

from admission.domain import inference_service, job_set, pod_template, run_policy, selectors, volcano_job, workloads
from admission.domain.definitions import DEFINED
from admission.domain.rules import RULES
from admission.domain.shapes import Fields, Idle, ListOf, MapOf, Scalar, Shape
from kube import KINDS

HONOURED, IDLE = "honoured", "**without effect**, and told"
KNOWN_ELSEWHERE: dict[int, tuple[str, str]] = {
    id(pod_template.POD_TEMPLATE): ("", "a pod template"),
    id(pod_template.POD_SPEC): ("", "the spec of a pod"),
    id(selectors.SELECTOR): ("", "a label selector"),
    id(run_policy.RUN_POLICY): ("TFJob.kubeflow.org", "as `runPolicy` of a TFJob"),
    id(volcano_job.JOB_SPEC): ("Job.batch.volcano.sh", "as `spec` of a Job of batch.volcano.sh"),
    id(job_set.JOB_SET_SPEC): ("JobSet.jobset.x-k8s.io", "as `spec` of a JobSet"),
    id(inference_service.CANARY): ("", "as `predictor`"),
    id(inference_service.BLOCK): ("", "as `model`, of the format that it is named after"),
    id(workloads.BATCH_JOB_SPEC): ("", "the `spec` of a Job of batch/v1, which is made of it"),
}
"""Shapes that several kinds share, and the kind at which they are told; "" for those of Kubernetes itself."""
HANDED_ON: dict[tuple[str, str], str] = {
    ("Job.batch.volcano.sh", "spec.volumes[].volumeClaim"): "handed on to the claim that is made",
    ("Job.batch.volcano.sh", "spec.networkTopology"): "handed on to the PodGroup",
    ("Job.batch.volcano.sh", "spec.tasks[].partitionPolicy.networkTopology"): "handed on to the PodGroup",
    ("TrainJob.trainer.kubeflow.org", "spec.trainer.resourcesPerNode"): "handed on to the pods",
    ("ResourceFlavor.kueue.x-k8s.io", "spec.tolerations[]"): "handed on to the pods",
    ("AdmissionCheck.kueue.x-k8s.io", "spec.parameters"): "for whoever answers the check",
    ("WorkloadPriorityClass.kueue.x-k8s.io", "description"): "for people",
    **{
        ("InferenceService.serving.kserve.io", f"spec.predictor.{name}"): "becomes `model`"
        for name in inference_service.FORMATS
    },
    ("InferenceGraph.serving.kserve.io", "spec.nodes"): "handed on to the router",
    ("InferenceGraph.serving.kserve.io", "spec.routerTimeouts"): "handed on to the router",
    ("PodGroup.scheduling.k8s.io", "spec.podGroupTemplateRef"): "for people",
    ("Workload.scheduling.k8s.io", "spec.controllerRef"): "for people",
    ("Workload.scheduling.k8s.io", "spec.podGroupTemplates[]"): "for controllers that make PodGroups",
}
"""Fields, with all that is below them, that no code names because they are passed on as a whole, and what they are for."""
SWITCHED_ON = ("PodGroup.scheduling.k8s.io", "Workload.scheduling.k8s.io")
"""Kinds of Kubernetes that are served where somebody has switched them on."""
FORMS = {
    Scalar.TEXT: "text",
    Scalar.WHOLE: "whole number",
    Scalar.TRUTH: "true or false",
    Scalar.AMOUNT: "quantity",
    Scalar.EITHER: "number or text",
    Scalar.NUMBER: "number",
    Scalar.ANYTHING: "anything",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One field of a kind: its path, what it may hold, and what becomes of it."""

    path: str
    form: str
    effect: str


def rows(kind: str) -> Iterator[Row]:
    """The fields of a kind, those above them left out."""
    for name, shape in RULES[kind].shape.known.items():
        if name != "metadata":
            yield from _rows(kind, name, shape, HONOURED)


def _rows(kind: str, path: str, shape: Shape, effect: str) -> Iterator[Row]:
    effect = HANDED_ON.get((kind, path), effect)
    told_at, form = KNOWN_ELSEWHERE.get(id(shape), (kind, ""))
    if form and told_at != kind:
        yield Row(path, form, effect)
        return
    match shape:
        case Idle(inner):
            yield Row(path, _form(inner), IDLE)
        case Fields(known) if known:
            for name, part in known.items():
                yield from _rows(kind, f"{path}.{name}", part, effect)
        case ListOf(item) if not isinstance(item, Scalar):
            yield from _rows(kind, f"{path}[]", item, effect)
        case MapOf(item) if not isinstance(item, Scalar):
            yield from _rows(kind, f"{path}.*", item, effect)
        case _:
            yield Row(path, _form(shape), effect)


def _form(shape: Shape) -> str:
    match shape:
        case ListOf(item):
            return f"list: {_form(item)}"
        case MapOf(item):
            return f"by name: {_form(item)}"
        case Scalar():
            return FORMS[shape]
    return "fields"


def described() -> list[str]:
    """The kinds with shapes of our own, in their order, and Kubernetes' own that only some clusters have."""
    return [*(kind for kind in DEFINED if kind in RULES), *SWITCHED_ON]


def title(kind: str) -> str:
    """How a section begins: the kind, and who acts on it."""
    info, support = KINDS[kind], BY_KIND.get(kind)
    actors = f", acted on by {', '.join(support.actors)}" if support else ""
    top = RULES[kind].shape
    spec = top.known.get("spec")
    closed = top.closed or (isinstance(spec, Fields) and spec.closed)
    unknown = "" if closed else " Fields besides these are kept without a word."
    return f"## {info.kind}\n\n{info.api_version}{actors}.{unknown}\n"
