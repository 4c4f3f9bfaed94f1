"""Workloads of Kubernetes itself: Deployment, ReplicaSet, StatefulSet, DaemonSet and batch/v1 Job."""

from collections.abc import Iterable

from admission.domain import names
from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.pod_template import FINISHING, POD_TEMPLATE, check_template, default_template
from admission.domain.selectors import SELECTOR, check_selector, matches
from admission.domain.shapes import (
    EITHER,
    TEXT,
    TRUTH,
    WHOLE,
    ListOf,
    copied,
    fields,
    one_of,
    pod_count,
    within,
)
from admission.domain.volumes import CLAIM_TEMPLATE, check_claim_spec
from admission.domain.world import Review
from kube import Manifest

WORKLOAD_SPEC = fields(
    replicas=WHOLE,
    selector=SELECTOR,
    template=POD_TEMPLATE,
    minReadySeconds=WHOLE,
    revisionHistoryLimit=WHOLE,
    progressDeadlineSeconds=WHOLE,
    paused=TRUTH,
    strategy=fields(type=TEXT, rollingUpdate=fields(maxSurge=EITHER, maxUnavailable=EITHER)),
    serviceName=TEXT,
    podManagementPolicy=TEXT,
    volumeClaimTemplates=ListOf(CLAIM_TEMPLATE),
)
BATCH_JOB_SPEC = fields(
    parallelism=WHOLE,
    completions=WHOLE,
    backoffLimit=WHOLE,
    backoffLimitPerIndex=WHOLE,
    activeDeadlineSeconds=WHOLE,
    ttlSecondsAfterFinished=WHOLE,
    completionMode=TEXT,
    suspend=TRUTH,
    manualSelector=TRUTH,
    template=POD_TEMPLATE,
    selector=SELECTOR,
)
LOCAL_QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
PARALLELISM = "tidegate.dev/parallelism"
"""The annotation of a Job that runs with less than it asked for: how much that was."""

MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
"""The annotation of a Job that says with how few pods it may start where there is no quota for all."""

QUOTA_NOTES = ("tidegate.dev/admission", "tidegate.dev/quota-of")
"""What the template of a Job that was given quota says of it."""

QUOTA_HELD = frozenset(("tidegate.dev/admission", "tidegate.dev/reservation"))
"""The annotations of a Job that holds quota, running or waiting for admission checks."""

WAY_OUT = "delete it and create it anew"


def default_workload(review: Review) -> None:
    """One replica, pods that always restart."""
    review.spec.setdefault("replicas", 1)
    default_template(review.spec.get("template") or {}, "Always")


def default_deployment(review: Review) -> None:
    """A rolling update with a quarter more and a quarter fewer pods."""
    default_workload(review)
    _hand_down(review)
    spec = review.spec
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxSurge", "25%")
        rolling.setdefault("maxUnavailable", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def default_stateful_set(review: Review) -> None:
    default_workload(review)
    _hand_down(review)
    review.spec.setdefault("podManagementPolicy", "OrderedReady")


def _leave_size_to_queue(review: Review, spec: Manifest, old: Manifest) -> None:
    """A Job that runs gets more pods when there is quota for them; what it asks for is kept until then."""
    if spec["suspend"] or not isinstance(spec.get("parallelism"), int) or not isinstance(old.get("parallelism"), int):
        return
    annotations = dict(review.metadata.get("annotations") or {})
    annotations.pop(PARALLELISM, None)
    if spec["parallelism"] > old["parallelism"]:
        annotations[PARALLELISM] = str(spec["parallelism"])
        spec["parallelism"] = old["parallelism"]
    review.metadata["annotations"] = annotations


def _hand_down(review: Review) -> None:
    """Pods of one that is in a LocalQueue ask for quota there, each for itself."""
    labels = review.metadata.get("labels") or {}
    named = {name: labels[name] for name in (LOCAL_QUEUE, PRIORITY) if name in labels}
    template = review.spec.get("template")
    if named and isinstance(template, dict):
        metadata = template.setdefault("metadata", {})
        metadata["labels"] = {**named, **(metadata.get("labels") or {})}


def default_daemon_set(review: Review) -> None:
    default_template(review.spec.get("template") or {}, "Always")


def check_workload(review: Review) -> Iterable[FieldError]:
    """The selector is not empty, matches the template, and stays; numbers are not negative."""
    spec = review.spec
    yield from pod_count("spec.replicas", spec.get("replicas"))
    yield from within("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
    yield from one_of("spec.strategy.type", (spec.get("strategy") or {}).get("type"), ("RollingUpdate", "Recreate"))
    templates = spec.get("volumeClaimTemplates") or []
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in templates]
    for index, claim in enumerate(templates):
        yield from _check_claim(f"spec.volumeClaimTemplates[{index}]", claim)
    yield from check_template("spec.template", spec.get("template"), ("Always",), claims)
    selector = spec.get("selector") or {}
    yield from check_selector("spec.selector", selector)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield FieldError("spec.selector", None, "is required; select the labels of the template")
    elif not matches(selector, labels):
        yield FieldError("spec.template.metadata.labels", labels, "must match spec.selector; give the pods its labels")
    if review.old is not None:
        yield from fixed("spec.selector", review.before("spec", "selector"), selector, WAY_OUT)


def _check_claim(path: str, claim: Manifest) -> Iterable[FieldError]:
    metadata = claim.get("metadata") or {}
    yield from names.dns_label(f"{path}.metadata.name", metadata.get("name") or "")
    yield from names.labels(f"{path}.metadata.labels", metadata.get("labels") or {})
    yield from check_claim_spec(f"{path}.spec", claim.get("spec") or {})


def default_batch_job(review: Review) -> None:
    """A Job in a LocalQueue is suspended until it is given quota; what it was given then stays as it is."""
    default_batch_job_spec(review.spec)
    if LOCAL_QUEUE in (review.metadata.get("labels") or {}):
        _leave_to_queue(review)


def _leave_to_queue(review: Review) -> None:
    spec = review.spec
    if review.old is None:
        spec["suspend"] = True
        return
    old = review.old.spec
    spec["suspend"] = old.get("suspend", True)
    _leave_size_to_queue(review, spec, old)
    before = (old.get("template") or {}).get("metadata") or {}
    given = (spec.get("template") or {}).setdefault("metadata", {})
    for part, kept_names in (("labels", (LOCAL_QUEUE,)), ("annotations", QUOTA_NOTES)):
        kept = {name: before[part][name] for name in kept_names if name in (before.get(part) or {})}
        if kept:
            given[part] = {**(given.get(part) or {}), **kept}


def default_batch_job_spec(spec: Manifest) -> None:
    """One pod, six retries; a job that says how many run at a time but not how many in all stops when one succeeds."""
    if "parallelism" not in spec and "completions" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    default_template(spec.get("template") or {})


def check_batch_job(review: Review) -> Iterable[FieldError]:
    """The spec holds; of a job that exists neither the number of completions nor the pods may change."""
    yield from check_batch_job_spec("spec", review.spec)
    if review.old is None:
        yield from _check_least(review)
        return
    old = copied(review.old.spec)
    default_batch_job_spec(old)
    for name in ("completions", "completionMode"):
        yield from fixed(f"spec.{name}", old.get(name), review.spec.get(name), WAY_OUT)
    if not old.get("suspend") or not QUOTA_HELD.isdisjoint(review.old.annotations):
        labels = review.metadata.get("labels") or {}
        path, way_out = f'metadata.labels["{LOCAL_QUEUE}"]', f"its quota is of that queue; {WAY_OUT}"
        yield from fixed(path, review.old.labels.get(LOCAL_QUEUE), labels.get(LOCAL_QUEUE), way_out)
    if not old.get("suspend"):
        way_out = f"suspend the job first, or {WAY_OUT}"
        yield from fixed("spec.template", old.get("template"), review.spec.get("template"), way_out)


def _check_least(review: Review) -> Iterable[FieldError]:
    """With how few pods a Job in a LocalQueue may start is a number below its parallelism."""
    if LOCAL_QUEUE not in (review.metadata.get("labels") or {}):
        return
    least, count = (review.metadata.get("annotations") or {}).get(MIN_PARALLELISM), review.spec["parallelism"]
    if least is not None and not (least.isascii() and least.isdigit() and 0 < int(least) < count):
        rule = f"must be a whole number above 0 and below spec.parallelism ({count}); correct it, or leave it out"
        yield FieldError(f'metadata.annotations["{MIN_PARALLELISM}"]', least, rule)


def check_batch_job_spec(path: str, spec: Manifest) -> Iterable[FieldError]:
    """Numbers are not negative, pods end, and an indexed job says how many indexes it has."""
    yield from pod_count(f"{path}.parallelism", spec.get("parallelism"))
    for name in (
        "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "backoffLimitPerIndex",
    ):  # fmt: skip
        yield from within(f"{path}.{name}", spec.get(name), 0)
    yield from one_of(f"{path}.completionMode", spec.get("completionMode"), ("NonIndexed", "Indexed"))
    if spec.get("completionMode") == "Indexed":
        yield from pod_count(f"{path}.completions", spec.get("completions"))
        if "completions" not in spec:
            yield FieldError(f"{path}.completions", None, "is required with completionMode Indexed")
    yield from check_template(f"{path}.template", spec.get("template"), FINISHING)
    pod = (spec.get("template") or {}).get("spec")
    if pod and "restartPolicy" not in pod:
        rule = f"is required; pods of a job have to end, so say {' or '.join(FINISHING)}"
        yield FieldError(f"{path}.template.spec.restartPolicy", None, rule)
