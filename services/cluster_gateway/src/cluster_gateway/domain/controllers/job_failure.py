"""podFailurePolicy of a batch/v1 Job: the first rule that a failed pod matches says what its failure means."""

from dataclasses import dataclass
from enum import Enum

from cluster_gateway.domain.controllers.work import condition_of
from kube import Manifest, Object


class Action(Enum):
    """What a failure means for the Job."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The action, and why it was chosen."""

    action: Action
    message: str = ""


def action_for(job: Object, pod: Object) -> Judgement:
    """What the failure of ``pod`` means; it counts where no rule matches."""
    rules: list[Manifest] = (job.spec.get("podFailurePolicy") or {}).get("rules") or []
    for number, rule in enumerate(rules):
        why = _by_exit_code(rule.get("onExitCodes"), pod) or _by_condition(rule.get("onPodConditions"), pod)
        if why and rule.get("action") in {action.value for action in Action}:
            return Judgement(Action(rule["action"]), f"{why} matching {rule['action']} rule at index {number}")
    return Judgement(Action.COUNT)


def _by_exit_code(wanted: Manifest | None, pod: Object) -> str:
    if not wanted:
        return ""
    listed = wanted.get("values") or ()
    statuses = [*(pod.status.get("initContainerStatuses") or ()), *(pod.status.get("containerStatuses") or ())]
    for status in statuses:
        code = ((status.get("state") or {}).get("terminated") or {}).get("exitCode")
        if not code or wanted.get("containerName") not in (None, status.get("name")):
            continue
        if (code in listed) is (wanted.get("operator") != "NotIn"):
            where = f"{pod.namespace}/{pod.name}"
            return f"Container {status.get('name')} for pod {where} failed with exit code {code}"
    return ""


def _by_condition(patterns: list[Manifest] | None, pod: Object) -> str:
    for pattern in patterns or ():
        condition = condition_of(pod.status, str(pattern.get("type")))
        if condition is not None and condition.get("status") == (pattern.get("status") or "True"):
            return f"Pod {pod.namespace}/{pod.name} has condition {pattern.get('type')}"
    return ""
