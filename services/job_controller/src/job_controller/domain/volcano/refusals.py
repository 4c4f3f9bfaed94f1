"""What becomes of a Volcano Job whose decisions the cluster refuses over and over."""

from job_controller.domain.reconcile import Actions, Refusal
from job_controller.domain.volcano.lifecycle import end_job, has_ended
from job_controller.domain.volcano.policies import Choice
from job_controller.domain.volcano.turn import NAME_TAKEN, REFUSED, Turn
from kube import Decision, Mutation, Verb
from kube.words import counted


def note_refusal(turn: Turn, refusal: Refusal) -> Actions:
    """Say in the job's state what is refused. What is to be done about the job stays to be done."""
    if has_ended(turn.phase):
        return Actions()
    job, reason, message = turn.job, NAME_TAKEN, refusal.message
    if refusal.times:
        reason, message = REFUSED, f"{counted(refusal.times, 'time')} in a row it was refused: {message}"
    state = {"phase": turn.phase or "Pending", "reason": reason, "message": message}
    if state.items() <= turn.state.items():
        return Actions()
    mutation = Mutation(Verb.STATUS, job.key, uid=job.uid, patch={"state": state})
    return Actions((Decision("RefusalNoted", job.key, job.uid, reason, f"{job.name}: {message}", (mutation,)),))


def terminate(turn: Turn, refusal: Refusal) -> Actions:
    """End the job as TerminateJob does."""
    if has_ended(turn.phase):
        return Actions()
    message = f"given up: {counted(refusal.times, 'time')} in a row it was refused: {refusal.message}"
    end_job(turn, Choice("TerminateJob", "RetryLimitReached", message))
    return turn.actions()
