"""TrainingRuntimes: the blueprints that TrainJobs are made from."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.job_set import JOB_SET_SPEC, check_job_set_spec, default_job_set_spec
from admission.domain.object_meta import TEMPLATE_METADATA
from admission.domain.shapes import ANYTHING, WHOLE, Fields, Idle, closed, fields, one_of, pod_count
from admission.domain.world import Review
from kube import Manifest

RUN = ("torch", "mpi", "jax", "xgboost")
FRAMEWORKS = (*RUN, "flux")
RUNTIME_SPEC = closed(
    mlPolicy=Fields({"numNodes": WHOLE, **dict.fromkeys(RUN, ANYTHING), "flux": Idle(ANYTHING)}, closed=True),
    podGroupPolicy=closed(coscheduling=Idle(fields(scheduleTimeoutSeconds=WHOLE)), volcano=ANYTHING),
    template=closed(metadata=TEMPLATE_METADATA, spec=JOB_SET_SPEC),
)
STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
STEPS = ("dataset-initializer", "model-initializer", "trainer")
TRAINER_CONTAINER = "node"


def default_runtime(review: Review) -> None:
    """One node, a minute for the group to be scheduled, and the defaults of the JobSet within."""
    spec = review.spec
    if "mlPolicy" in spec:
        spec["mlPolicy"].setdefault("numNodes", 1)
    group = spec.get("podGroupPolicy") or {}
    if "coscheduling" in group:
        group["coscheduling"].setdefault("scheduleTimeoutSeconds", 60)
    job_set = (spec.get("template") or {}).get("spec")
    if job_set:
        default_job_set_spec(job_set)


def check_runtime(review: Review) -> Iterable[FieldError]:
    """One framework at most, and a JobSet in which each step is there once, in one replica."""
    spec = review.spec
    policy = spec.get("mlPolicy") or {}
    yield from pod_count("spec.mlPolicy.numNodes", policy.get("numNodes"), 1)
    for path, holder, names in (
        ("spec.mlPolicy", policy, FRAMEWORKS),
        ("spec.podGroupPolicy", spec.get("podGroupPolicy") or {}, ("coscheduling", "volcano")),
    ):
        given = [name for name in names if name in holder]
        if len(given) > 1:
            yield FieldError(path, ", ".join(given), "must hold only one of them")
    job_set = (spec.get("template") or {}).get("spec")
    if not job_set:
        yield FieldError("spec.template.spec", None, "is required; describe the JobSet")
        return
    yield from check_job_set_spec("spec.template.spec", review.key.name, job_set)
    yield from _check_steps("spec.template.spec.replicatedJobs", job_set.get("replicatedJobs") or [])


def _check_steps(path: str, jobs: list[Manifest]) -> Iterable[FieldError]:
    seen: set[str] = set()
    for index, job in enumerate(jobs):
        where = f"{path}[{index}]"
        if job["replicas"] != 1:
            yield FieldError(f"{where}.replicas", job["replicas"], "must be 1; numNodes says how many nodes train")
        step = _step(job)
        if not step:
            continue
        label = f'{where}.template.metadata.labels["{STEP_LABEL}"]'
        yield from one_of(label, step, STEPS)
        if step in seen:
            yield FieldError(label, step, "is the step of two replicated jobs; keep it on one")
        seen.add(step)
        if step == "trainer":
            yield from _check_trainer(where, job)


def _step(job: Mapping[str, Any]) -> str:
    metadata = (job.get("template") or {}).get("metadata") or {}
    return str((metadata.get("labels") or {}).get(STEP_LABEL) or "")


def _check_trainer(path: str, job: Manifest) -> Iterable[FieldError]:
    pod = (((job.get("template") or {}).get("spec") or {}).get("template") or {}).get("spec") or {}
    given = [container.get("name") or "" for container in pod.get("containers") or []]
    if given and TRAINER_CONTAINER not in given:
        where = f"{path}.template.spec.template.spec.containers"
        rule = f"the trainer needs a container named {TRAINER_CONTAINER}; rename the one that trains"
        yield FieldError(where, ", ".join(given), rule)
