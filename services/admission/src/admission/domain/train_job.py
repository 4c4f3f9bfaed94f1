"""TrainJobs of Trainer v2: a runtime that exists, made special by what the job says."""

from collections.abc import Iterable

from admission.domain.changes import fixed
from admission.domain.containers import RESOURCES, check_resources
from admission.domain.elastic_policy import check_processes
from admission.domain.errors import FieldError
from admission.domain.shapes import (
    ANYTHING,
    EITHER,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Idle,
    ListOf,
    closed,
    one_of,
    pod_count,
    within,
)
from admission.domain.world import Review
from kube import Key, Object

_ENV = ListOf(closed(name=TEXT, value=TEXT, valueFrom=ANYTHING))
_INITIALIZER = closed(storageUri=TEXT, env=_ENV, secretRef=closed(name=TEXT))
TRAIN_JOB_SPEC = closed(
    runtimeRef=closed(name=TEXT, apiGroup=TEXT, kind=TEXT),
    initializer=closed(dataset=_INITIALIZER, model=_INITIALIZER),
    trainer=closed(
        image=TEXT,
        command=TEXTS,
        args=TEXTS,
        env=_ENV,
        numNodes=WHOLE,
        resourcesPerNode=RESOURCES,
        numProcPerNode=EITHER,
    ),
    runtimePatches=ListOf(ANYTHING),
    podTemplateOverrides=Idle(ListOf(ANYTHING)),
    labels=ANYTHING,
    annotations=ANYTHING,
    suspend=TRUTH,
    activeDeadlineSeconds=WHOLE,
    managedBy=TEXT,
)
GROUP = "trainer.kubeflow.org"
CONTROLLER = f"{GROUP}/trainjob-controller"
RUNTIME_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")
MANAGERS = (CONTROLLER, "kueue.x-k8s.io/multikueue")
# Policy of the runtime → the variables that are set for its trainers.
RESERVED = {
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "jax": ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS"),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}
WAY_OUT = "delete the TrainJob and create it anew"


def default_train_job(review: Review) -> None:
    """A runtime of the cluster, run by the trainer, at once."""
    spec = review.spec
    reference = spec.setdefault("runtimeRef", {})
    reference.setdefault("apiGroup", GROUP)
    reference.setdefault("kind", RUNTIME_KINDS[0])
    spec.setdefault("suspend", False)
    spec.setdefault("managedBy", CONTROLLER)


def check_train_job(review: Review) -> Iterable[FieldError]:
    """The runtime exists, and the job sets no variable that is set for it; runtime, deadline and manager stay."""
    spec = review.spec
    trainer = spec.get("trainer") or {}
    runtime = find_runtime(review)
    yield from _check_reference(review, runtime)
    yield from one_of("spec.managedBy", spec["managedBy"], MANAGERS)
    yield from within("spec.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), 1)
    yield from pod_count("spec.trainer.numNodes", trainer.get("numNodes"), 1)
    if "numProcPerNode" in trainer:
        yield from check_processes("spec.trainer.numProcPerNode", str(trainer["numProcPerNode"]))
    yield from check_resources("spec.trainer.resourcesPerNode", trainer.get("resourcesPerNode") or {})
    yield from _check_variables(trainer.get("env") or [], runtime)
    if review.old is not None:
        for name in ("runtimeRef", "managedBy", "activeDeadlineSeconds"):
            yield from fixed(f"spec.{name}", review.old.spec.get(name), spec.get(name), WAY_OUT)


def find_runtime(review: Review) -> Object | None:
    """The runtime that the job refers to, or None."""
    reference = review.spec["runtimeRef"]
    namespace = review.key.namespace if reference["kind"] == "TrainingRuntime" else ""
    key = Key(f"{reference['kind']}.{reference['apiGroup']}", namespace, reference.get("name") or "")
    return review.world.get(key)


def _check_reference(review: Review, runtime: Object | None) -> Iterable[FieldError]:
    reference = review.spec["runtimeRef"]
    name, kind = reference.get("name"), reference["kind"]
    yield from one_of("spec.runtimeRef.kind", kind, RUNTIME_KINDS)
    if not name:
        yield FieldError("spec.runtimeRef.name", None, f"is required; name a {kind}")
    elif runtime is None and review.creating:
        yield FieldError("spec.runtimeRef.name", name, f"there is no {kind} {name}; create it or name one that exists")


def _check_variables(given: list[dict[str, str]], runtime: Object | None) -> Iterable[FieldError]:
    policy = (runtime.spec.get("mlPolicy") if runtime else None) or {}
    reserved = [name for framework in RESERVED if framework in policy for name in RESERVED[framework]]
    for index, variable in enumerate(given):
        if variable.get("name") in reserved:
            rule = f"{variable['name']} is set for every trainer and may not be set by the job; leave it out"
            yield FieldError(f"spec.trainer.env[{index}].name", variable["name"], rule)


def warn_train_job(review: Review) -> Iterable[str]:
    runtime = find_runtime(review)
    if runtime is not None and runtime.labels.get(f"{GROUP}/support") == "deprecated":
        yield f"spec.runtimeRef.name: the runtime {runtime.name} is deprecated"
