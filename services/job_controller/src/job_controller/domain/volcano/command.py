"""Commands to jobs: each is deleted first, in the same decision that does what it says, so it is done at most once."""

from collections.abc import Iterable

from job_controller.domain.reconcile import Actions, View
from job_controller.domain.volcano.policies import Choice
from job_controller.domain.volcano.spec import JOB
from job_controller.domain.volcano.turn import Turn
from kube import Decision, Event, Key, Mutation, Object, Verb, kind_id

COMMAND = "Command.bus.volcano.sh"
ACTIONS = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")


def target_of(command: Object) -> Key | None:
    """The job that a Command is for; None when it is for something else, such as a queue."""
    target = command.body.get("target") or {}
    version, kind = str(target.get("apiVersion") or ""), str(target.get("kind") or "")
    if kind != "Job" or (version and kind_id(version, kind) != JOB):
        return None
    return Key(JOB, command.namespace, str(target.get("name") or ""))


def is_for(command: Object, job: Object) -> bool:
    """Whether a Command means this very job: by name, and by uid where it gives one."""
    uid = (command.body.get("target") or {}).get("uid")
    return target_of(command) == job.key and uid in (None, "", job.uid)


def commanded(turn: Turn) -> Choice | None:
    """Take the oldest Command to the job, if there is one, and say what it asks for."""
    found = [item for item in turn.view.in_namespace(COMMAND, turn.job.namespace) if is_for(item, turn.job)]
    waiting = sorted((item for item in found if not item.deleting), key=lambda item: (item.created, item.name))
    if not waiting:
        return None
    command = waiting[0]
    turn.delete(command)
    action = str(command.body.get("action") or "")
    message = str(command.body.get("message") or f"Command {command.name} asked for {action}")
    turn.say("CommandTaken", "CommandIssued", message) if action not in ACTIONS else None
    return Choice(action, str(command.body.get("reason") or "CommandIssued"), message)


class StrayCommands:
    """Commands whose job is not there, or is another one by now: they are deleted and do nothing."""

    kind = COMMAND
    watches: tuple[str, ...] = (JOB,)

    def observe(self, job: Object, event: Event, now: int) -> None:
        """A Command has no edges."""

    def forget(self, uid: str) -> None:
        """Nothing is remembered of a Command."""

    def concerned(self, event: Event, view: View) -> Iterable[Key]:
        """The Commands to a job that has gone."""
        if event.new is not None:
            return []
        return [item.key for item in view.in_namespace(COMMAND, event.key.namespace) if target_of(item) == event.key]

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """Delete the Command when its job is not there."""
        key = target_of(job)
        if key is None:
            return Actions()
        target = view.get(key)
        if target is not None and is_for(job, target):
            return Actions()
        message = f"{job.name} asks for {job.body.get('action')} of {key}, which is not there"
        mutation = Mutation(Verb.DELETE, job.key, uid=job.uid)
        return Actions((Decision("CommandDropped", job.key, job.uid, "TargetNotFound", message, (mutation,)),))
