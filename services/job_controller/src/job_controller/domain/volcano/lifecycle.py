"""The ten phases of a Volcano Job and what leads from one to the next."""

from collections.abc import Callable

from job_controller.domain.volcano.census import Member
from job_controller.domain.volcano.command import commanded
from job_controller.domain.volcano.policies import TARGETED, Choice, judge
from job_controller.domain.volcano.sync import synchronize
from job_controller.domain.volcano.turn import Turn
from kube import parse_time

ENDINGS = {
    "AbortJob": ("Aborting", "Aborted"),
    "TerminateJob": ("Terminating", "Terminated"),
    "CompleteJob": ("Completing", "Completed"),
}
FINAL: dict[str, str] = dict(ENDINGS.values())
WITH_TTL = ("Completed", "Failed", "Terminated")


def has_ended(phase: str) -> bool:
    """Whether a job in ``phase`` has come to its end or is on its way there."""
    return phase in (*FINAL, *FINAL.values(), "Failed")


def take_turn(turn: Turn) -> None:
    """Decide what happens to the job now: a Command first, then what policies say, then what its phase asks for."""
    choice = commanded(turn)
    _HANDLERS.get(turn.phase, _active)(turn, choice)


def _active(turn: Turn, choice: Choice | None) -> None:
    """Pending and Running: policies are asked, and without any the pods are kept as they should be."""
    choices: tuple[Choice, ...] = (choice,) if choice else ()
    if not choices:
        verdict = judge(turn.spec, turn.census, turn.memory, turn.version, turn.now)
        choices = verdict.due
        turn.wake(verdict.next_at)
    first = choices[0] if choices else None
    if first is not None and first.action in ENDINGS:
        end_job(turn, first)
    elif first is not None and first.action == "RestartJob":
        _restart(turn, turn.census.members, first, whole=True)
    elif parts := [item for item in choices if item.action in TARGETED and item.trigger and item.trigger.task]:
        members = {member.pod.uid: member for item in parts for member in _targets(turn, item)}
        _restart(turn, tuple(members.values()), parts[0], whole=False)
    else:
        synchronize(turn)


def _restarting(turn: Turn, choice: Choice | None) -> None:
    """Wait until the pods of the last run are gone, so far that the minimum can be made again."""
    if choice is not None and choice.action in ENDINGS:
        end_job(turn, choice)
        return
    if choice is not None and choice.action == "RestartJob":
        _restart(turn, turn.census.members, choice, whole=True)
        return
    stale = [member for member in turn.census.members if member.version < turn.version]
    turn.delete_pods(stale)
    total = turn.spec.replicas
    if total - turn.leaving >= min(turn.spec.minimum, total):
        turn.enter("Pending", "JobRestarting", f"retry {turn.retries} of {turn.spec.max_retry} begins")


def _ending(turn: Turn, choice: Choice | None) -> None:
    """Aborting, Completing, Terminating: until every pod that was not finished is gone."""
    if choice is not None and choice.action == "ResumeJob" and turn.phase == "Aborting":
        _resume(turn, choice)
        return
    if _stop_unfinished(turn):
        turn.enter(FINAL[turn.phase], turn.state_reason, turn.state_message)


def _final(turn: Turn, choice: Choice | None) -> None:
    """Aborted, Completed, Terminated, Failed: nothing runs on, and after its time to live the job is deleted."""
    if choice is not None and choice.action == "ResumeJob" and turn.phase == "Aborted":
        _resume(turn, choice)
        return
    _stop_unfinished(turn)
    turn.drop_group()
    if turn.spec.ttl_ms is None or turn.phase not in WITH_TTL:
        return
    at = _finished_at(turn) + turn.spec.ttl_ms
    if at <= turn.now:
        turn.delete_job(f"{turn.job.name} ended {turn.spec.ttl_ms // 1000} s ago and may be kept no longer")
    else:
        turn.wake(at)


def end_job(turn: Turn, choice: Choice) -> None:
    """Stop what is not finished; what has succeeded or failed stays to be looked at."""
    turn.next_version()
    intermediate, final = ENDINGS[choice.action]
    done = _stop_unfinished(turn)
    turn.drop_group()
    turn.enter(final if done else intermediate, choice.reason, choice.message)
    turn.say(f"Job{final}", choice.reason, choice.message)


def _restart(turn: Turn, members: tuple[Member, ...], choice: Choice, *, whole: bool) -> None:
    """Begin the next run: with fresh pods in the place of ``members``, or, after the last retry, with none at all."""
    turn.next_retry()
    limit = turn.spec.max_retry
    if 0 <= limit <= turn.retries:
        message = f"{choice.message}; that was retry {turn.retries} of {limit}, so the job has failed"
        turn.next_version()
        _stop_unfinished(turn)
        turn.drop_group()
        turn.enter("Failed", "MaxRetryExceeded", message)
        turn.say("JobFailed", "MaxRetryExceeded", message)
        return
    if whole:
        turn.next_version()
        turn.drop_group()
    turn.delete_pods(members)
    turn.enter("Restarting", choice.reason, choice.message)
    turn.say("JobRestarted", choice.reason, choice.message)


def _resume(turn: Turn, choice: Choice) -> None:
    turn.next_retry()
    turn.delete_pods(turn.census.members)
    turn.drop_group()
    turn.enter("Restarting", choice.reason, choice.message)
    turn.say("JobResumed", choice.reason, choice.message)


def _stop_unfinished(turn: Turn) -> bool:
    """Delete the pods that still run or wait; whether there is none left."""
    unfinished = [member for member in turn.census.members if not member.finished]
    turn.delete_pods(unfinished)
    return not unfinished


def _targets(turn: Turn, choice: Choice) -> list[Member]:
    """The pods that a restart of one pod, task or partition replaces."""
    trigger = choice.trigger
    assert trigger is not None, "only a policy restarts a part of a job, and it has a trigger"
    if trigger.member is None or choice.action == "RestartTask":
        return turn.census.of_task(trigger.task)
    if choice.action == "RestartPartition":
        return [item for item in turn.census.of_task(trigger.task) if item.partition == trigger.member.partition]
    return [item for item in turn.census.alive if item.pod.uid == trigger.member.pod.uid]


def _finished_at(turn: Turn) -> int:
    try:
        return parse_time(str(turn.state.get("lastTransitionTime") or ""))
    except ValueError:
        return turn.now


_Handler = Callable[[Turn, Choice | None], None]
_HANDLERS: dict[str, _Handler] = {
    "": _active,
    "Pending": _active,
    "Running": _active,
    "Restarting": _restarting,
    "Aborting": _ending,
    "Completing": _ending,
    "Terminating": _ending,
    "Aborted": _final,
    "Completed": _final,
    "Terminated": _final,
    "Failed": _final,
}
