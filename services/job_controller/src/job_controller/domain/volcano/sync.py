"""Keeping a Volcano Job as it should be: its volumes, its plugins' objects, its PodGroup, its pods, its phase."""

from job_controller.domain.volcano.census import Member
from job_controller.domain.volcano.group import group_manifest, group_patch
from job_controller.domain.volcano.plugins import plugin_objects
from job_controller.domain.volcano.pods import PodForm
from job_controller.domain.volcano.spec import Task
from job_controller.domain.volcano.turn import Turn
from job_controller.domain.volcano.volumes import ensure_volumes
from kube import Manifest, key_of
from kube.words import counted, verb


def synchronize(turn: Turn) -> None:
    """SyncJob: make what is missing, delete what is too much, and say which phase follows from the pods there are."""
    if (missing := ensure_volumes(turn)) is not None:
        turn.enter("Pending", "VolumeClaimMissing", missing)
        return
    _ensure_plugins(turn)
    let_in = _ensure_group(turn)
    _drop_surplus(turn)
    if let_in:
        _make_pods(turn)
    _settle_phase(turn)


def _ensure_plugins(turn: Turn) -> None:
    names = {f"plugin-{name}": name for name in turn.spec.plugins}
    turn.controlled = {**(turn.controlled or {}), **names}
    for manifest in plugin_objects(turn.job, turn.spec):
        found = turn.view.get(key_of(manifest))
        if found is None:
            turn.create(manifest)
        elif "data" in manifest and manifest["kind"] == "ConfigMap" and found.body.get("data") != manifest["data"]:
            gone = {name: None for name in found.body.get("data") or () if name not in manifest["data"]}
            turn.patch(found, {"data": {**manifest["data"], **gone}})
            turn.say(
                "HostsChanged", "JobUpdated", f"{manifest['metadata']['name']}: the hosts of {turn.job.name} changed"
            )


def _ensure_group(turn: Turn) -> bool:
    """Whether the job has been let in, which shows in the phase of its PodGroup."""
    group = turn.group
    if group is None:
        if turn.view.get(turn.group_key) is None:
            turn.create(group_manifest(turn.job, turn.spec, turn.view))
            message = f"{turn.job.name} asks queue {turn.spec.queue} for {turn.spec.minimum} of {counted(turn.spec.replicas, 'pod')}"
            turn.say("PodGroupWanted", "JobCreated", message)
        return False
    if patch := group_patch(group, turn.job, turn.spec, turn.view):
        turn.patch(group, patch)
        turn.say(
            "PodGroupChanged", "JobUpdated", f"{turn.job.name} now needs {counted(turn.spec.minimum, 'pod')} at least"
        )
    return str(group.status.get("phase") or "Pending") != "Pending"


def _drop_surplus(turn: Turn) -> None:
    """Delete the pods beyond the replicas of their task, the highest indexes; those of tasks that are no more, too."""
    replicas = {task.name: task.replicas for task in turn.spec.tasks}
    surplus = [item for item in turn.census.alive if item.index >= replicas.get(item.task, 0)]
    turn.delete_pods(surplus)
    if surplus:
        names = ", ".join(item.pod.name for item in surplus)
        turn.say(
            "PodsDropped",
            "JobScaledDown",
            f"{turn.job.name} has {counted(turn.spec.replicas, 'pod')} now: {names} must go",
        )


def _make_pods(turn: Turn) -> None:
    made: list[str] = []
    for task in turn.spec.tasks:
        here = {member.index for member in turn.census.members if member.task == task.name}
        missing = [index for index in range(task.replicas) if index not in here]
        if not missing or not _may_start(turn, task):
            continue
        form = PodForm(turn.job, turn.spec, task, turn.version, turn.retries)
        for index in missing:
            manifest = form.pod(index)
            turn.create(manifest)
            made.append(_name(manifest))
    if made:
        turn.say("PodsWanted", "PodsMissing", f"{turn.job.name}: {counted(len(made), 'pod')}, {made[0]} to {made[-1]}")


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _may_start(turn: Turn, task: Task) -> bool:
    """Whether the tasks that this one depends on are up: all of them, or any where the task says so."""
    up = [_is_up(turn, other) for name in task.depends_on if (other := turn.spec.task(name)) is not None]
    if not up:
        return True
    return any(up) if task.depends_on_any else all(up)


def _is_up(turn: Turn, task: Task) -> bool:
    return sum(1 for member in turn.census.of_task(task.name) if _serves(member)) >= task.minimum


def _serves(member: Member) -> bool:
    return member.phase == "Succeeded" or (member.phase == "Running" and member.ready)


def _settle_phase(turn: Turn) -> None:
    """Pending and Running follow from how many pods are in which phase; a job whose pods are all done has ended."""
    phases, total = turn.census.phases(), turn.spec.replicas
    succeeded = phases["Succeeded"]
    done = succeeded + phases["Failed"]
    if turn.phase != "Running":
        if phases["Running"] + done >= turn.spec.minimum:
            turn.enter("Running", "", "")
        else:
            turn.enter("Pending", *_waits_for(turn, phases["Running"] + done))
        return
    if total == 0:
        return
    if turn.spec.min_success is not None and succeeded >= turn.spec.min_success:
        _finish(
            turn,
            "Completed",
            "MinSuccessReached",
            f"{succeeded} of {counted(total, 'pod')} {verb(succeeded, 'has', 'have')} succeeded",
        )
    elif done == total:
        _finish(turn, *_result(turn, phases["Succeeded"], total))
    elif phases["Pending"] > total - turn.spec.minimum:
        turn.enter("Pending", *_waits_for(turn, phases["Running"] + done))


def _result(turn: Turn, succeeded: int, total: int) -> tuple[str, str, str]:
    """How a job ends whose pods are all done."""
    spec = turn.spec
    if spec.minimum >= sum(task.minimum for task in spec.tasks):
        for task in spec.tasks:
            have = sum(1 for member in turn.census.of_task(task.name) if member.phase == "Succeeded")
            if have < task.minimum:
                words = f"task {task.name}: {counted(have, 'pod')} succeeded, at least {task.minimum} had to"
                return "Failed", "TaskBelowMinimum", words
    wanted = spec.min_success if spec.min_success is not None else spec.minimum
    words = f"{succeeded} of {counted(total, 'pod')} succeeded, at least {wanted} had to"
    return ("Completed", "JobCompleted", words) if succeeded >= wanted else ("Failed", "BelowMinimum", words)


def _finish(turn: Turn, phase: str, reason: str, message: str) -> None:
    turn.delete_pods(member for member in turn.census.members if not member.finished)
    turn.drop_group()
    turn.enter(phase, reason, message)
    turn.say(f"Job{phase}", reason, message)


def _waits_for(turn: Turn, started: int) -> tuple[str, str]:
    """Why the job is pending; the words change only when the kind of the reason does."""
    group = turn.group
    if group is None or str(group.status.get("phase") or "Pending") == "Pending":
        return "NotLetIn", f"waits until queue {turn.spec.queue} lets PodGroup {turn.group_key.name} in"
    return (
        "PodsNotStarted",
        f"{started} of at least {counted(turn.spec.minimum, 'pod')} {verb(started, 'has', 'have')} started",
    )
