"""The tasks of a Volcano Job: defaults and rules of each, and of all together."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.dependencies import check_dependencies
from admission.domain.errors import FieldError
from admission.domain.job_policies import POLICIES, check_policies
from admission.domain.network_topology import NETWORK_TOPOLOGY, check_topology, default_topology
from admission.domain.pod_template import POD_TEMPLATE, check_template, default_template
from admission.domain.quantities import is_whole
from admission.domain.shapes import TEXT, TEXTS, WHOLE, ListOf, closed, one_of, pod_count, within
from kube import Manifest

TASK = closed(
    name=TEXT,
    replicas=WHOLE,
    minAvailable=WHOLE,
    template=POD_TEMPLATE,
    policies=POLICIES,
    topologyPolicy=TEXT,
    maxRetry=WHOLE,
    dependsOn=closed(name=TEXTS, iteration=TEXT),
    partitionPolicy=closed(
        totalPartitions=WHOLE, partitionSize=WHOLE, minPartitions=WHOLE, networkTopology=NETWORK_TOPOLOGY
    ),
)
TASKS = ListOf(TASK)

RETRIES = 3
UNLIMITED = -1
POD_NAME_MAX = 63
TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


def default_task(index: int, task: Manifest) -> None:
    """Name ``default<index>``, one replica, all of them needed, 3 retries."""
    task["name"] = task.get("name") or f"default{index}"
    task.setdefault("replicas", 1)
    task["maxRetry"] = task.get("maxRetry") or RETRIES
    partitions = task.get("partitionPolicy")
    if partitions is not None:
        partitions.setdefault("minPartitions", 0)
        default_topology(partitions)
    if "minAvailable" not in task:
        whole = (partitions or {}).get("minPartitions", 0) * (partitions or {}).get("partitionSize", 0)
        task["minAvailable"] = whole or task["replicas"]
    template = task.get("template") or {}
    default_template(template, "Always")
    spec = template.get("spec") or {}
    if spec.get("hostNetwork"):
        spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")


def check_tasks(path: str, job: str, tasks: list[Manifest], volumes: Iterable[str]) -> Iterable[FieldError]:
    """There are tasks, each is sound, their names differ, and none waits for itself."""
    if not tasks:
        yield FieldError(path, None, "a job needs at least one task; add it")
    for index, task in enumerate(tasks):
        where = f"{path}[{index}]"
        yield from _check_task(where, job, task)
        yield from check_template(f"{where}.template", task.get("template"), more_volumes=volumes)
    yield from names.distinct(f"{path}[{{}}].name", [task["name"] for task in tasks], "tasks")
    yield from _check_order(path, tasks)


def _check_task(path: str, job: str, task: Manifest) -> Iterable[FieldError]:
    name, replicas, minimum = task["name"], task["replicas"], task["minAvailable"]
    yield from names.dns_label(f"{path}.name", name)
    last = f"{job}-{name}-{max(replicas - 1, 0)}"
    if len(last) > POD_NAME_MAX:
        yield FieldError(f"{path}.name", name, f"its pod {last} would have a name of over {POD_NAME_MAX}; shorten it")
    yield from pod_count(f"{path}.replicas", replicas)
    yield from within(f"{path}.minAvailable", minimum, 0)
    if minimum > replicas:
        rule = f"minAvailable must be at most the task's replicas ({replicas}); lower it or raise replicas"
        yield FieldError(f"{path}.minAvailable", minimum, rule)
    yield from within(f"{path}.maxRetry", task["maxRetry"], UNLIMITED)
    yield from check_policies(f"{path}.policies", task.get("policies") or [])
    yield from _check_numa(path, task)
    if task.get("partitionPolicy") is not None:
        yield from _check_partitions(path, task)


def _check_numa(path: str, task: Manifest) -> Iterable[FieldError]:
    policy = task.get("topologyPolicy") or "none"
    yield from one_of(f"{path}.topologyPolicy", policy, TOPOLOGY_POLICIES)
    if policy == "none":
        return
    spec = (task.get("template") or {}).get("spec") or {}
    for index, container in enumerate(spec.get("containers") or []):
        resources: Mapping[str, Any] = container.get("resources") or {}
        for part in ("requests", "limits"):
            cpu = (resources.get(part) or {}).get("cpu")
            if cpu is not None and not is_whole(cpu):
                where = f"{path}.template.spec.containers[{index}].resources.{part}.cpu"
                yield FieldError(where, cpu, f"must be whole CPUs with topologyPolicy {policy}")


def _check_partitions(path: str, task: Manifest) -> Iterable[FieldError]:
    policy, where = task["partitionPolicy"], f"{path}.partitionPolicy"
    total, size, least = policy.get("totalPartitions", 0), policy.get("partitionSize", 0), policy["minPartitions"]
    yield from within(f"{where}.totalPartitions", total, 1)
    yield from within(f"{where}.partitionSize", size, 1)
    yield from within(f"{where}.minPartitions", least, 0)
    yield from check_topology(where, policy)
    if total < 1 or size < 1:
        return
    if total * size != task["replicas"]:
        rule = (
            f"{total} partitions of {size} are {total * size} pods, but replicas is {task['replicas']}; make them equal"
        )
        yield FieldError(f"{where}.totalPartitions", total, rule)
    if least > total:
        yield FieldError(f"{where}.minPartitions", least, f"must be at most totalPartitions ({total})")
    if least > 0 and task["minAvailable"] != least * size:
        rule = (
            f"must be minPartitions × partitionSize of the partitionPolicy ({least * size}); leave it out or correct it"
        )
        yield FieldError(f"{path}.minAvailable", task["minAvailable"], rule)


def _check_order(path: str, tasks: list[Manifest]) -> Iterable[FieldError]:
    paths, needs = {}, {}
    for index, task in enumerate(tasks):
        order = task.get("dependsOn") or {}
        yield from one_of(f"{path}[{index}].dependsOn.iteration", order.get("iteration") or None, ("any", "all"))
        paths[task["name"]] = f"{path}[{index}].dependsOn"
        needs[task["name"]] = order.get("name") or []
    yield from check_dependencies(paths, needs, "the task")
