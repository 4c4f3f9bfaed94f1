"""JobSets: several groups of equal jobs that live and restart together."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.hyper_node import check_pattern
from admission.domain.object_meta import TEMPLATE_METADATA
from admission.domain.shapes import (
    ANYTHING,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Idle,
    ListOf,
    closed,
    copied,
    one_of,
    pod_count,
    within,
)
from admission.domain.workloads import BATCH_JOB_SPEC, check_batch_job_spec, default_batch_job_spec
from admission.domain.world import Review
from kube import Manifest

JOB_SET_SPEC = closed(
    replicatedJobs=ListOf(
        closed(
            name=TEXT,
            groupName=TEXT,
            replicas=WHOLE,
            template=closed(metadata=TEMPLATE_METADATA, spec=BATCH_JOB_SPEC),
            dependsOn=ListOf(closed(name=TEXT, status=TEXT)),
        )
    ),
    network=closed(enableDNSHostnames=TRUTH, subdomain=TEXT, publishNotReadyAddresses=TRUTH),
    successPolicy=closed(operator=TEXT, targetReplicatedJobs=TEXTS),
    failurePolicy=closed(
        maxRestarts=WHOLE,
        restartStrategy=TEXT,
        rules=ListOf(
            closed(
                name=TEXT,
                action=TEXT,
                onJobFailureReasons=TEXTS,
                onJobFailureMessagePatterns=TEXTS,
                targetReplicatedJobs=TEXTS,
            )
        ),
    ),
    startupPolicy=closed(startupPolicyOrder=TEXT),
    suspend=TRUTH,
    coordinator=closed(replicatedJob=TEXT, jobIndex=WHOLE, podIndex=WHOLE),
    managedBy=TEXT,
    ttlSecondsAfterFinished=WHOLE,
    volumeClaimPolicies=Idle(ANYTHING),
)
ACTIONS = (
    "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob", "RestartJobAndIgnoreMaxRestarts",
)  # fmt: skip
REASONS = ("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy")
STRATEGIES = ("Recreate", "BlockingRecreate", "InPlaceRestart")
HOST_NAME_MAX = 63
WAY_OUT = "delete the JobSet and create it anew"


def default_job_set(review: Review) -> None:
    """Indexed jobs in one replica, host names on, all jobs must succeed, no restart."""
    default_job_set_spec(review.spec)


def default_job_set_spec(spec: Manifest) -> None:
    for job in spec.get("replicatedJobs") or []:
        job.setdefault("replicas", 1)
        job.setdefault("groupName", "default")
        _default_job((job.get("template") or {}).get("spec") or {})
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    spec.setdefault("successPolicy", {}).setdefault("operator", "All")
    spec.setdefault("startupPolicy", {}).setdefault("startupPolicyOrder", "AnyOrder")
    spec.setdefault("suspend", False)
    failure = spec.get("failurePolicy")
    if failure is not None:
        failure.setdefault("maxRestarts", 0)
        failure.setdefault("restartStrategy", "Recreate")
        for index, rule in enumerate(failure.get("rules") or []):
            rule.setdefault("name", f"failurePolicyRule{index}")


def _default_job(spec: Manifest) -> None:
    if not spec:
        return
    spec.setdefault("completionMode", "Indexed")
    default_batch_job_spec(spec)
    if spec["completionMode"] == "Indexed":
        spec.setdefault("completions", spec["parallelism"])
    pod = (spec.get("template") or {}).get("spec")
    if pod:
        pod.setdefault("restartPolicy", "OnFailure")


def check_job_set(review: Review) -> Iterable[FieldError]:
    yield from check_job_set_spec("spec", review.key.name, review.spec)
    if review.old is None:
        return
    old = copied(review.old.spec)
    default_job_set_spec(old)
    parts = ["managedBy", "successPolicy", "failurePolicy", "startupPolicy", "network"]
    for name in parts:
        yield from fixed(f"spec.{name}", old.get(name), review.spec.get(name), WAY_OUT)
    if not old.get("suspend"):
        way_out = f"suspend the JobSet first, or {WAY_OUT}"
        yield from fixed("spec.replicatedJobs", old.get("replicatedJobs"), review.spec.get("replicatedJobs"), way_out)


def check_job_set_spec(path: str, name: str, spec: Manifest) -> Iterable[FieldError]:
    """Jobs with names of their own that only wait for earlier ones, and policies that name jobs that there are."""
    jobs = spec.get("replicatedJobs") or []
    if not jobs:
        yield FieldError(f"{path}.replicatedJobs", None, "a JobSet needs at least one replicated job; add it")
    given = [job.get("name") or "" for job in jobs]
    for index, job in enumerate(jobs):
        yield from _check_job(f"{path}.replicatedJobs[{index}]", name, job, given[:index])
    yield from names.distinct(f"{path}.replicatedJobs[{{}}].name", given, "replicated jobs")
    success = spec["successPolicy"]
    yield from one_of(f"{path}.successPolicy.operator", success["operator"], ("All", "Any"))
    yield from _check_targets(f"{path}.successPolicy", success, given)
    order = spec["startupPolicy"]["startupPolicyOrder"]
    yield from one_of(f"{path}.startupPolicy.startupPolicyOrder", order, ("AnyOrder", "InOrder"))
    if order == "InOrder" and any(job.get("dependsOn") for job in jobs):
        yield FieldError(f"{path}.startupPolicy.startupPolicyOrder", order, "excludes dependsOn; keep one of the two")
    yield from within(f"{path}.ttlSecondsAfterFinished", spec.get("ttlSecondsAfterFinished"), 0)
    coordinator = spec.get("coordinator")
    if coordinator is not None and coordinator.get("replicatedJob") not in given:
        where = f"{path}.coordinator.replicatedJob"
        yield FieldError(where, coordinator.get("replicatedJob"), f"must be one of {', '.join(given)}")
    yield from _check_failure(f"{path}.failurePolicy", spec.get("failurePolicy"), given)


def _check_job(path: str, job_set: str, job: Manifest, earlier: list[str]) -> Iterable[FieldError]:
    name, replicas = job.get("name") or "", job["replicas"]
    yield from names.dns_1035_label(f"{path}.name", name)
    yield from pod_count(f"{path}.replicas", replicas)
    spec = (job.get("template") or {}).get("spec")
    if not spec:
        yield FieldError(f"{path}.template.spec", None, "is required; describe the job")
        return
    yield from check_batch_job_spec(f"{path}.template.spec", spec)
    host = f"{job_set}-{name}-{max(replicas - 1, 0)}-{max(spec.get('completions', 1) - 1, 0)}"
    if len(host) > HOST_NAME_MAX:
        yield FieldError(
            f"{path}.name", name, f"its pod {host} would have a host name of over {HOST_NAME_MAX}; shorten it"
        )
    for index, wanted in enumerate(job.get("dependsOn") or []):
        where = f"{path}.dependsOn[{index}]"
        if wanted.get("name") not in earlier:
            rule = "must name a replicated job that stands before this one in the list"
            yield FieldError(f"{where}.name", wanted.get("name"), rule)
        yield from one_of(f"{where}.status", wanted.get("status") or "", ("Ready", "Complete"))


def _check_failure(path: str, policy: Mapping[str, Any] | None, jobs: list[str]) -> Iterable[FieldError]:
    if policy is None:
        return
    yield from within(f"{path}.maxRestarts", policy["maxRestarts"], 0)
    yield from one_of(f"{path}.restartStrategy", policy["restartStrategy"], STRATEGIES)
    rules = policy.get("rules") or []
    for index, rule in enumerate(rules):
        where = f"{path}.rules[{index}]"
        yield from one_of(f"{where}.action", rule.get("action") or "", ACTIONS)
        for reason in rule.get("onJobFailureReasons") or []:
            yield from one_of(f"{where}.onJobFailureReasons", reason, REASONS)
        for pattern in rule.get("onJobFailureMessagePatterns") or []:
            yield from check_pattern(f"{where}.onJobFailureMessagePatterns", pattern)
        yield from _check_targets(where, rule, jobs)
    yield from names.distinct(f"{path}.rules[{{}}].name", [rule["name"] for rule in rules], "rules")


def _check_targets(path: str, policy: Mapping[str, Any], jobs: list[str]) -> Iterable[FieldError]:
    for target in policy.get("targetReplicatedJobs") or []:
        yield from one_of(f"{path}.targetReplicatedJobs", target, jobs)
