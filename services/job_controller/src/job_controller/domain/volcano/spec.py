"""What a Volcano Job asks for, with every field that was left out at its default."""

from dataclasses import dataclass

from kube import Manifest, Object, parse_duration

JOB = "Job.batch.volcano.sh"
IMPLIED_PLUGINS = {"tensorflow": ("svc",), "pytorch": ("svc",), "ray": ("svc",), "mpi": ("svc", "ssh")}


@dataclass(frozen=True, slots=True)
class Policy:
    """One row of the table event → action. With ``exit_code`` it speaks of failures with that code only."""

    action: str
    events: tuple[str, ...]
    exit_code: int | None
    timeout_ms: int | None


@dataclass(frozen=True, slots=True)
class Partition:
    """A task cut into ``total`` parts of ``size`` pods; the part of a pod is its index divided by the size."""

    total: int
    size: int
    minimum: int
    topology: Manifest | None


@dataclass(frozen=True, slots=True)
class Task:
    """One task; ``max_retry`` is -1 where its pods may restart for ever."""

    name: str
    replicas: int
    minimum: int
    template: Manifest
    policies: tuple[Policy, ...]
    max_retry: int
    depends_on: tuple[str, ...]
    depends_on_any: bool
    partition: Partition | None
    topology_policy: str

    @property
    def pod_spec(self) -> Manifest:
        return self.template.get("spec") or {}


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The spec of a job; ``ttl_ms`` and ``min_success`` are None where there is none."""

    tasks: tuple[Task, ...]
    minimum: int
    min_success: int | None
    max_retry: int
    ttl_ms: int | None
    queue: str
    priority_class: str
    scheduler: str
    plugins: dict[str, tuple[str, ...]]
    policies: tuple[Policy, ...]
    volumes: tuple[Manifest, ...]
    topology: Manifest | None
    running_estimate: str

    @property
    def replicas(self) -> int:
        """The pods of all tasks together."""
        return sum(task.replicas for task in self.tasks)

    def task(self, name: str) -> Task | None:
        """The task of that name, if there is one."""
        return next((task for task in self.tasks if task.name == name), None)


def read_spec(job: Object) -> JobSpec:
    """The spec of ``job``; what is missing or of no sense has its default."""
    spec = job.spec
    tasks = tuple(_task(index, task) for index, task in enumerate(spec.get("tasks") or ()))
    ttl = spec.get("ttlSecondsAfterFinished")
    min_success = spec.get("minSuccess")
    return JobSpec(
        tasks=tasks,
        minimum=int(spec.get("minAvailable") or 0) or sum(task.minimum for task in tasks),
        min_success=int(min_success) if min_success is not None else None,
        max_retry=int(spec.get("maxRetry") or 3),
        ttl_ms=int(ttl) * 1000 if ttl is not None else None,
        queue=str(spec.get("queue") or "default"),
        priority_class=str(spec.get("priorityClassName") or ""),
        scheduler=str(spec.get("schedulerName") or ""),
        plugins=_plugins(spec.get("plugins") or {}),
        policies=_policies(spec.get("policies") or ()),
        volumes=tuple(spec.get("volumes") or ()),
        topology=spec.get("networkTopology"),
        running_estimate=str(spec.get("runningEstimate") or ""),
    )


def _task(index: int, task: Manifest) -> Task:
    depends = task.get("dependsOn") or {}
    replicas = int(task.get("replicas", 1) or 0)
    partition = _partition(task.get("partitionPolicy"))
    given = task.get("minAvailable")
    return Task(
        name=str(task.get("name") or f"default{index}"),
        replicas=replicas,
        minimum=int(given) if given is not None else _default_minimum(replicas, partition),
        template=task.get("template") or {},
        policies=_policies(task.get("policies") or ()),
        max_retry=int(task.get("maxRetry") or 3),
        depends_on=tuple(depends.get("name") or ()),
        depends_on_any=depends.get("iteration") == "any",
        partition=partition,
        topology_policy=str(task.get("topologyPolicy") or "none"),
    )


def _default_minimum(replicas: int, partition: Partition | None) -> int:
    return partition.minimum * partition.size if partition and partition.minimum else replicas


def _partition(policy: Manifest | None) -> Partition | None:
    if not policy:
        return None
    return Partition(
        total=int(policy.get("totalPartitions") or 1),
        size=max(1, int(policy.get("partitionSize") or 1)),
        minimum=int(policy.get("minPartitions") or 0),
        topology=policy.get("networkTopology"),
    )


def _policies(policies: list[Manifest] | tuple[()]) -> tuple[Policy, ...]:
    return tuple(_policy(policy) for policy in policies)


def _policy(policy: Manifest) -> Policy:
    code, timeout = policy.get("exitCode"), policy.get("timeout")
    events = tuple(dict.fromkeys([*(policy.get("events") or ()), *([policy["event"]] if policy.get("event") else ())]))
    return Policy(
        action=str(policy.get("action") or "SyncJob"),
        events=tuple(str(event) for event in events),
        exit_code=int(code) if code is not None else None,
        timeout_ms=parse_duration(str(timeout)) if timeout else None,
    )


def _plugins(given: dict[str, list[str] | None]) -> dict[str, tuple[str, ...]]:
    plugins = {name: tuple(str(word) for word in arguments or ()) for name, arguments in given.items()}
    for name in list(plugins):
        for implied in IMPLIED_PLUGINS.get(name, ()):
            plugins.setdefault(implied, ())
    return dict(sorted(plugins.items()))
