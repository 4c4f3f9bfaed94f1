"""Volcano JobFlows, which run jobs in an order, and the JobTemplates that they are made from."""

from collections.abc import Iterable
from typing import Any

from admission.domain import names
from admission.domain.dependencies import check_dependencies
from admission.domain.errors import FieldError
from admission.domain.shapes import ANYTHING, TEXT, TEXTS, WHOLE, ListOf, closed, one_of, within
from admission.domain.volcano_job import check_job_spec, default_job_spec, warn_job_spec
from admission.domain.world import Review
from kube import Key

PROBE = closed(
    httpGetList=ListOf(closed(taskName=TEXT, path=TEXT, port=WHOLE, httpHeader=closed(name=TEXT, value=TEXT))),
    tcpSocketList=ListOf(closed(taskName=TEXT, port=WHOLE)),
    taskStatusList=ListOf(closed(taskName=TEXT, phase=TEXT)),
)
JOB_FLOW_SPEC = closed(
    flows=ListOf(
        closed(
            name=TEXT,
            dependsOn=closed(targets=TEXTS, probe=PROBE),
            patch=closed(jobSpec=ANYTHING, spec=ANYTHING),
        )
    ),
    jobRetainPolicy=TEXT,
)
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
TEMPLATE_KIND = "JobTemplate.flow.volcano.sh"


def default_job_flow(review: Review) -> None:
    """The jobs of a flow that is done are kept."""
    review.spec.setdefault("jobRetainPolicy", "retain")


def check_job_flow(review: Review) -> Iterable[FieldError]:
    """Every step has a name of its own and waits only for steps that there are, in no circle."""
    flows = review.spec.get("flows") or []
    yield from one_of("spec.jobRetainPolicy", review.spec["jobRetainPolicy"], ("retain", "delete"))
    if not flows:
        yield FieldError("spec.flows", None, "a flow needs at least one job; name the job templates")
    paths, needs = {}, {}
    for index, flow in enumerate(flows):
        name, where = flow.get("name") or "", f"spec.flows[{index}]"
        if name:
            yield from names.dns_subdomain(f"{where}.name", name)
        else:
            yield FieldError(f"{where}.name", None, "is required; name the job template of this step")
        paths[name] = f"{where}.dependsOn.targets"
        needs[name] = (flow.get("dependsOn") or {}).get("targets") or []
        yield from _check_probe(f"{where}.dependsOn.probe", (flow.get("dependsOn") or {}).get("probe") or {})
    yield from names.distinct("spec.flows[{}].name", [flow.get("name") or "" for flow in flows], "steps")
    yield from check_dependencies(paths, needs, "the step")


def _check_probe(where: str, probe: dict[str, Any]) -> Iterable[FieldError]:
    """Every probe says which task it asks, and requests on which port."""
    for kind in ("httpGetList", "tcpSocketList", "taskStatusList"):
        for index, item in enumerate(probe.get(kind) or []):
            path = f"{where}.{kind}[{index}]"
            if not item.get("taskName"):
                yield FieldError(f"{path}.taskName", None, "is required; name a task of the targets")
            if kind == "taskStatusList":
                yield from one_of(f"{path}.phase", item.get("phase") or "", PHASES)
            elif item.get("port") is None:
                yield FieldError(f"{path}.port", None, "is required; name the port that the pods listen on")
            else:
                yield from within(f"{path}.port", item["port"], 1, 65535)


def warn_job_flow(review: Review) -> Iterable[str]:
    """A step waits as long as its template is not there."""
    for index, flow in enumerate(review.spec.get("flows") or []):
        name = flow.get("name") or ""
        if name and review.world.get(Key(TEMPLATE_KIND, review.key.namespace, name)) is None:
            yield f"spec.flows[{index}].name: no JobTemplate {name} exists in {review.key.namespace} yet; the step waits"


def default_job_template(review: Review) -> None:
    default_job_spec(review.spec)


def check_job_template(review: Review) -> Iterable[FieldError]:
    """A template holds what a job has to hold; its queue is checked when a job is made of it."""
    return check_job_spec("spec", review.key.name, review.spec)


def warn_job_template(review: Review) -> Iterable[str]:
    return warn_job_spec("spec", review, review.spec)
