"""Kubeflow's v1 training jobs: TFJob, PyTorchJob, XGBoostJob, PaddleJob, JAXJob."""

from collections.abc import Iterable

from admission.domain.elastic_policy import ELASTIC_POLICY, check_elastic, check_processes, default_elastic
from admission.domain.errors import FieldError
from admission.domain.frameworks import FRAMEWORKS, Framework
from admission.domain.pod_template import POD_TEMPLATE, check_template, default_template
from admission.domain.run_policy import RUN_POLICY, TRAINING_OPERATOR, check_run_policy, default_run_policy
from admission.domain.shapes import EITHER, TEXT, TRUTH, WHOLE, Fields, Idle, MapOf, Shape, fields, one_of, pod_count
from admission.domain.world import Review
from kube import Manifest

REPLICA = Fields(
    {"replicas": WHOLE, "template": POD_TEMPLATE, "restartPolicy": TEXT, "scale": Idle(WHOLE)}, closed=True
)
RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
TEMPLATE_RESTART_POLICIES = ("Always", "OnFailure", "Never", "")
NAME_MAX = 63


def job_spec_shape(framework: Framework) -> Fields:
    """The fields of the spec of a job of ``framework``."""
    known: dict[str, Shape] = {"runPolicy": RUN_POLICY, framework.replicas: MapOf(REPLICA)}
    more = {
        "PyTorchJob": fields(elasticPolicy=ELASTIC_POLICY, nprocPerNode=EITHER),
        "PaddleJob": fields(elasticPolicy=ELASTIC_POLICY),
        "TFJob": fields(successPolicy=TEXT, enableDynamicWorker=TRUTH),
    }.get(framework.kind, fields())
    return Fields({**known, **more.known}, closed=True)


def default_kubeflow_job(review: Review) -> None:
    """One replica of each type, the framework's restart policy and port, and the run policy."""
    framework, spec = FRAMEWORKS[review.key.kind], review.spec
    default_run_policy(spec)
    replicas = spec.get(framework.replicas) or {}
    _spell_types(replicas, framework)
    for replica in replicas.values():
        replica.setdefault("replicas", 1)
        replica.setdefault("restartPolicy", framework.restart_policy)
        template = replica.get("template") or {}
        default_template(template)
        _default_port(template.get("spec") or {}, framework)
    if framework.kind == "PyTorchJob":
        spec["nprocPerNode"] = str(spec.get("nprocPerNode", "auto"))
    if framework.kind in ("PyTorchJob", "PaddleJob"):
        default_elastic(spec, replicas)


def _spell_types(replicas: Manifest, framework: Framework) -> None:
    spelling = {name.lower(): name for name in framework.types}
    for given in list(replicas):
        wanted = spelling.get(given.lower(), given)
        if wanted != given and wanted not in replicas:
            replicas[wanted] = replicas.pop(given)


def _default_port(spec: Manifest, framework: Framework) -> None:
    for container in spec.get("containers") or []:
        if container.get("name") != framework.container:
            continue
        ports = container.setdefault("ports", [])
        if all(port.get("name") != framework.port_name for port in ports):
            ports.append({"name": framework.port_name, "containerPort": framework.port, "protocol": "TCP"})


def check_kubeflow_job(review: Review) -> Iterable[FieldError]:
    """Known replica types, each with the framework's container, at most one leader, and a name that can be a host's."""
    framework, spec = FRAMEWORKS[review.key.kind], review.spec
    path, replicas = f"spec.{framework.replicas}", spec.get(framework.replicas) or {}
    if not replicas:
        yield FieldError(path, None, f"is required; give at least one of {', '.join(framework.types)}")
    for name, replica in replicas.items():
        if name not in framework.types:
            rule = f"{framework.kind} has no replica type {name}; use {', '.join(framework.types)}"
            yield FieldError(f"{path}.{name}", name, rule)
        yield from _check_replica(f"{path}.{name}", review, name, replica, framework)
    yield from _check_leaders(path, replicas, framework)
    yield from check_run_policy(review, TRAINING_OPERATOR)
    if framework.kind == "TFJob":
        yield from one_of("spec.successPolicy", spec.get("successPolicy"), ("", "AllWorkers"))
    if framework.kind == "PyTorchJob":
        yield from check_processes("spec.nprocPerNode", spec["nprocPerNode"])
    if framework.kind in ("PyTorchJob", "PaddleJob"):
        yield from check_elastic(path, review, replicas)


def _check_replica(
    path: str, review: Review, kind: str, replica: Manifest, framework: Framework
) -> Iterable[FieldError]:
    count = replica["replicas"]
    yield from pod_count(f"{path}.replicas", count)
    yield from one_of(f"{path}.restartPolicy", replica["restartPolicy"], RESTART_POLICIES)
    yield from check_template(f"{path}.template", replica.get("template"), TEMPLATE_RESTART_POLICIES)
    containers = ((replica.get("template") or {}).get("spec") or {}).get("containers") or []
    given = [container.get("name") or "" for container in containers]
    if framework.container not in given:
        rule = f"needs a container named {framework.container}; rename the one that trains"
        yield FieldError(f"{path}.template.spec.containers", ", ".join(given) or None, rule)
    for index, container in enumerate(containers):
        if not container.get("image"):
            where = f"{path}.template.spec.containers[{index}].image"
            yield FieldError(where, None, "is required; any name will do where nodes run processes")
    last = f"{review.key.name}-{kind.lower()}-{max(count - 1, 0)}"
    if len(last) > NAME_MAX:
        yield FieldError(
            "metadata.name", review.key.name, f"its pod {last} would have a name of over {NAME_MAX}; shorten it"
        )


def _check_leaders(path: str, replicas: Manifest, framework: Framework) -> Iterable[FieldError]:
    leaders = {name: replicas[name] for name in framework.leaders if name in replicas}
    if framework.needs_leader and not leaders:
        yield FieldError(
            path, ", ".join(replicas) or None, f"{framework.kind} needs one {framework.leaders[0]}; add it"
        )
    for name, replica in leaders.items():
        if replica["replicas"] > 1 or (framework.needs_leader and replica["replicas"] != 1):
            yield FieldError(
                f"{path}.{name}.replicas", replica["replicas"], f"there can be only one {name}; set it to 1"
            )
    if len(leaders) > 1:
        yield FieldError(path, " and ".join(leaders), "a job has one leader; keep one of the two")
