"""A JobSet, read: its replicated jobs and its policies, defaults filled in."""

from dataclasses import dataclass

from kube import Manifest, Object

JOB_SET = "JobSet.jobset.x-k8s.io"
PREFIX = "jobset.sigs.k8s.io/"
OWN_CONTROLLERS = ("", "jobset.sigs.k8s.io/jobset-controller")


@dataclass(frozen=True, slots=True)
class ReplicatedJobSpec:
    """One template of Jobs; ``depends_on`` pairs the name of another with Ready or Complete."""

    name: str
    group: str
    replicas: int
    template: Manifest
    depends_on: tuple[tuple[str, str], ...]

    @property
    def job_spec(self) -> Manifest:
        return self.template.get("spec") or {}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the failure policy; empty selectors match everything."""

    name: str
    action: str
    reasons: tuple[str, ...]
    patterns: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    max_restarts: int
    blocking: bool
    """Whether a restart waits until every Job of the attempt before is gone."""
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class JobSetSpec:
    """``subdomain`` is "" where pods get no names; ``failure`` None where any failed Job fails the set."""

    jobs: tuple[ReplicatedJobSpec, ...]
    subdomain: str
    publish_not_ready: bool
    success_operator: str
    success_targets: tuple[str, ...]
    failure: FailurePolicy | None
    in_order: bool
    suspend: bool
    ttl_seconds: int | None
    coordinator: str
    """The host name of the coordinating pod, "" for none."""
    managed_elsewhere: bool


def read_job_set(source: Object) -> JobSetSpec:
    """What the spec of ``source`` says."""
    spec = source.spec
    network, success = spec.get("network") or {}, spec.get("successPolicy") or {}
    named = network.get("enableDNSHostnames")
    subdomain = network.get("subdomain") or source.name
    return JobSetSpec(
        jobs=tuple(_read_replicated_job(entry) for entry in spec.get("replicatedJobs") or []),
        subdomain=subdomain if named is None or named else "",
        publish_not_ready=network.get("publishNotReadyAddresses") is not False,
        success_operator=success.get("operator") or "All",
        success_targets=tuple(success.get("targetReplicatedJobs") or ()),
        failure=_read_failure_policy(spec.get("failurePolicy")),
        in_order=(spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder",
        suspend=bool(spec.get("suspend")),
        ttl_seconds=spec.get("ttlSecondsAfterFinished"),
        coordinator=_coordinator(source.name, subdomain, spec.get("coordinator")),
        managed_elsewhere=(spec.get("managedBy") or "") not in OWN_CONTROLLERS,
    )


def _read_replicated_job(entry: Manifest) -> ReplicatedJobSpec:
    replicas = entry.get("replicas")
    return ReplicatedJobSpec(
        name=entry.get("name") or "",
        group=entry.get("groupName") or "default",
        replicas=1 if replicas is None else int(replicas),
        template=entry.get("template") or {},
        depends_on=tuple((one.get("name") or "", one.get("status") or "") for one in entry.get("dependsOn") or []),
    )


def _read_failure_policy(policy: Manifest | None) -> FailurePolicy | None:
    if policy is None:
        return None
    rules = tuple(_read_rule(number, rule) for number, rule in enumerate(policy.get("rules") or []))
    return FailurePolicy(
        int(policy.get("maxRestarts") or 0), policy.get("restartStrategy") == "BlockingRecreate", rules
    )


def _read_rule(number: int, rule: Manifest) -> Rule:
    return Rule(
        name=rule.get("name") or f"failurePolicyRule{number}",
        action=rule.get("action") or "",
        reasons=tuple(rule.get("onJobFailureReasons") or ()),
        patterns=tuple(rule.get("onJobFailureMessagePatterns") or ()),
        targets=tuple(rule.get("targetReplicatedJobs") or ()),
    )


def _coordinator(name: str, subdomain: str, coordinator: Manifest | None) -> str:
    if not coordinator:
        return ""
    job, pod = coordinator.get("jobIndex") or 0, coordinator.get("podIndex") or 0
    return f"{name}-{coordinator.get('replicatedJob')}-{job}-{pod}.{subdomain}"
