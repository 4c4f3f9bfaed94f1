"""The shape that Kubeflow's v1 jobs share: replicas by type, each type with one pod template.

Types are kept in a fixed order, the leading type first, so that of two things that happen at once the leader's counts
and no outcome depends on the order of a map.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from job_controller.domain.kubeflow.run_policy import RunPolicy, read_run_policy
from kube import Manifest, Object

JOB_NAME = "training.kubeflow.org/job-name"
JOB_ROLE = "training.kubeflow.org/job-role"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
REPLICA_TYPE = "training.kubeflow.org/replica-type"


@dataclass(frozen=True, slots=True)
class Framework:
    """What is fixed for one kind of job. ``types`` are in the order of rank, ``leaders`` those that decide the outcome."""

    kind: str
    specs_field: str
    container: str
    port_name: str
    port: int
    restart_policy: str
    types: tuple[str, ...]
    leaders: tuple[str, ...]
    leader_restart_policy: str = ""
    """The leader's default, where it differs from the others'."""

    @property
    def short(self) -> str:
        """The kind without its group, the first word of every reason."""
        return self.kind.partition(".")[0]

    @property
    def operator_name(self) -> str:
        return f"{self.short.lower()}-controller"


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """The replicas of one type."""

    type: str
    count: int
    restart_policy: str
    template: Manifest

    @property
    def word(self) -> str:
        """The type as it stands in names and labels."""
        return self.type.lower()

    @property
    def pod_spec(self) -> Manifest:
        return self.template.get("spec") or {}


@dataclass(frozen=True, slots=True)
class ReplicatedJob:
    """A job of one of the v1 kinds, read."""

    source: Object
    framework: Framework
    replicas: tuple[ReplicaSpec, ...]
    policy: RunPolicy

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def namespace(self) -> str:
        return self.source.namespace

    @property
    def spec(self) -> Manifest:
        return self.source.spec

    @property
    def title(self) -> str:
        """The job in a sentence for people."""
        return f"{self.framework.short} {self.namespace}/{self.name}"

    @property
    def total(self) -> int:
        return sum(replica.count for replica in self.replicas)

    @property
    def leader(self) -> ReplicaSpec | None:
        """The replicas of the leading type, if the job has one."""
        return next((replica for replica in self.replicas if replica.type in self.framework.leaders), None)

    @property
    def deciding(self) -> ReplicaSpec | None:
        """The replicas whose success is the job's: the leader's, else the workers'."""
        return self.leader or self.of_type("Worker")

    @property
    def elastic(self) -> tuple[int, int] | None:
        """The range of workers between which an elastic job may run, (min, max)."""
        policy = self.spec.get("elasticPolicy")
        workers = self.of_type("Worker")
        if policy is None or workers is None:
            return None
        low, high = policy.get("minReplicas"), policy.get("maxReplicas")
        first = low if low is not None else high if high is not None else workers.count
        return first, high if high is not None else first

    def of_type(self, kind: str) -> ReplicaSpec | None:
        return next((replica for replica in self.replicas if replica.type == kind), None)

    def count_of(self, kind: str) -> int:
        replica = self.of_type(kind)
        return replica.count if replica else 0

    def members(self) -> Iterator[tuple[ReplicaSpec, int]]:
        """Every pod that there should be, as (replicas, index), the leader first."""
        return ((replica, index) for replica in self.replicas for index in range(replica.count))

    def port_of(self, replica: ReplicaSpec) -> int:
        """The port of the framework in the replica's container; the framework's own where it names none."""
        for container in replica.pod_spec.get("containers") or []:
            for port in container.get("ports") or [] if container.get("name") == self.framework.container else []:
                if port.get("name") == self.framework.port_name:
                    return int(port.get("containerPort") or self.framework.port)
        return self.framework.port


def read_replicated_job(source: Object, framework: Framework) -> ReplicatedJob:
    """The job that ``source`` describes; replica types are known whatever their case, unknown ones are left out."""
    given = {word.lower(): spec or {} for word, spec in (source.spec.get(framework.specs_field) or {}).items()}
    replicas = tuple(
        _read_replica(kind, given[kind.lower()], framework) for kind in framework.types if kind.lower() in given
    )
    return ReplicatedJob(source, framework, replicas, read_run_policy(source.spec))


def _read_replica(kind: str, spec: Manifest, framework: Framework) -> ReplicaSpec:
    count = spec.get("replicas")
    default = framework.leader_restart_policy if kind in framework.leaders else ""
    policy = spec.get("restartPolicy") or default or framework.restart_policy
    return ReplicaSpec(kind, 1 if count is None else int(count), policy, spec.get("template") or {})


def member_name(job: str, kind: str, index: int) -> str:
    """The name of a pod and of its service: ``<job>-<type>-<index>``."""
    return f"{job}-{kind.lower()}-{index}".replace("/", "-")
