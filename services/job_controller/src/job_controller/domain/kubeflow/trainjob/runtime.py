"""The runtime that a TrainJob names, and what both say together about nodes, processes and resources."""

from dataclasses import dataclass
from typing import Any

from job_controller.domain.reconcile import View
from kube import Key, Manifest, Object, kind_id
from kube.pods import container_request
from resources import Amounts, QuantityError, parse_amounts

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAIN_JOB = "TrainJob.trainer.kubeflow.org"
RUNTIMES = ("ClusterTrainingRuntime.trainer.kubeflow.org", "TrainingRuntime.trainer.kubeflow.org")
NODE = "node"
LAUNCHER = "launcher"
PORT = 29500


@dataclass(frozen=True, slots=True)
class Training:
    """A TrainJob together with the spec of its runtime."""

    job: Object
    runtime: Manifest

    @property
    def trainer(self) -> Manifest:
        return self.job.spec.get("trainer") or {}

    @property
    def policy(self) -> Manifest:
        return self.runtime.get("mlPolicy") or {}

    @property
    def replicated_jobs(self) -> list[Manifest]:
        """The replicated jobs of the runtime's template."""
        jobs: list[Manifest] = ((self.runtime.get("template") or {}).get("spec") or {}).get("replicatedJobs") or []
        return jobs

    @property
    def nodes(self) -> int:
        """How many training nodes: the job's number, else the policy's, else the template's."""
        for given in (self.trainer.get("numNodes"), self.policy.get("numNodes")):
            if given is not None:
                return int(given)
        own = next((job_spec(job).get("parallelism") for job in self.replicated_jobs if is_trainer(job)), None)
        return int(own or 1)

    @property
    def launcher_is_node(self) -> bool:
        return bool((self.policy.get("mpi") or {}).get("runLauncherAsNode"))

    @property
    def topology(self) -> Manifest | None:
        """The network topology that the gang is to keep to, as Volcano's PodGroup says it."""
        volcano: Manifest = (self.runtime.get("podGroupPolicy") or {}).get("volcano") or {}
        return volcano.get("networkTopology")

    @property
    def node_host(self) -> str:
        """The name of the first node's pod in the JobSet's service."""
        return f"{self.job.name}-{NODE}-0-0.{self.job.name}"

    def resources(self) -> Manifest:
        """What one node is given: the job's word, else that of the runtime's trainer container."""
        given = self.trainer.get("resourcesPerNode")
        return given if given else next((one.get("resources") or {} for one in self._trainer_containers()), {})

    def gpus(self) -> int:
        """How many GPUs one node has, of whatever make; 0 where a quantity is none."""
        try:
            amounts: Amounts = container_request({"resources": self.resources()})
        except QuantityError:
            return 0
        return sum(amount for name, amount in amounts.items() if "gpu" in name.lower())

    def processes(self, policy: str) -> Any:
        """``numProcPerNode``: the job's, else that of the runtime's ``policy``; None where neither says."""
        given = self.trainer.get("numProcPerNode")
        return given if given is not None else (self.policy.get(policy) or {}).get("numProcPerNode")

    def _trainer_containers(self) -> list[Manifest]:
        specs = [pod_spec(job) for job in self.replicated_jobs if is_trainer(job)]
        return [one for spec in specs for one in spec.get("containers") or [] if one.get("name") == NODE]


def find_runtime(job: Object, view: View) -> Object | None:
    """The runtime that the job's ``runtimeRef`` names; a TrainingRuntime is looked for in the job's namespace."""
    key = runtime_key(job)
    return view.get(key) if key.kind in RUNTIMES else None


def runtime_key(job: Object) -> Key:
    """The key that the job's ``runtimeRef`` means."""
    reference = job.spec.get("runtimeRef") or {}
    group = reference.get("apiGroup") or "trainer.kubeflow.org"
    kind = kind_id(f"{group}/v1alpha1", reference.get("kind") or "ClusterTrainingRuntime")
    return Key(kind, job.namespace if kind.startswith("TrainingRuntime.") else "", reference.get("name") or "")


def step_of(replicated: Manifest) -> str:
    """Which step of the TrainJob a replicated job is: trainer, dataset-initializer, model-initializer or ""."""
    metadata = (replicated.get("template") or {}).get("metadata") or {}
    return str((metadata.get("labels") or {}).get(ANCESTOR) or "")


def is_trainer(replicated: Manifest) -> bool:
    return step_of(replicated) == "trainer"


def node_counts(job_set_spec: Manifest) -> dict[str, int]:
    """How many training nodes each replicated job of a JobSet has."""
    jobs = job_set_spec.get("replicatedJobs") or []
    named = [(str(job.get("name") or ""), job) for job in jobs]
    return {name: int(job_spec(job).get("parallelism") or 1) for name, job in named if is_trainer(job) or name == NODE}


def job_spec(replicated: Manifest) -> Manifest:
    spec: Manifest = (replicated.get("template") or {}).get("spec") or {}
    return spec


def pod_spec(replicated: Manifest) -> Manifest:
    spec: Manifest = (job_spec(replicated).get("template") or {}).get("spec") or {}
    return spec


def cpus(listed: Manifest | None) -> int:
    """Whole CPUs in a list of resources, rounded up; at least 1."""
    try:
        return max(1, -(-parse_amounts(listed).get("cpu", 0) // 1000))
    except QuantityError:
        return 1
