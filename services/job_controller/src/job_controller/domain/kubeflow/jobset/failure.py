"""What the failure policy of a JobSet answers to failed Jobs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from job_controller.domain.kubeflow.batch_jobs import JobFailure, job_failure
from job_controller.domain.kubeflow.jobset.spec import PREFIX, FailurePolicy, Rule
from kube import Object, parse_time

DEFAULT_ACTION = "RestartJobSet"


@dataclass(frozen=True, slots=True)
class Answer:
    """The action, the failed Job that it answers to, and the rule that says so ("" where none does)."""

    action: str
    job: Object
    rule: str


def answer_failures(policy: FailurePolicy, failed: Sequence[Object]) -> Answer:
    """The first rule that matches any of the ``failed`` Jobs decides, for the one of them that failed first.

    The order of rules goes before the order of failures. Where no rule matches, the set restarts.
    """
    in_order = sorted(failed, key=failed_at)
    for rule in policy.rules:
        match = next((job for job in in_order if _matches(rule, job)), None)
        if match is not None:
            return Answer(rule.action, match, rule.name)
    return Answer(DEFAULT_ACTION, in_order[0], "")


def failed_at(job: Object) -> tuple[int, str]:
    """When the Job failed, in ms; of several at once the first by name."""
    at = job_failure(job).at
    return (parse_time(at) if at else 0, job.name)


def _matches(rule: Rule, job: Object) -> bool:
    failure: JobFailure = job_failure(job)
    return (
        (not rule.targets or job.labels.get(f"{PREFIX}replicatedjob-name") in rule.targets)
        and (not rule.reasons or failure.reason in rule.reasons)
        and (not rule.patterns or any(_found(pattern, failure.message) for pattern in rule.patterns))
    )


def _found(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False  # refused at admission; a pattern that is none matches nothing
