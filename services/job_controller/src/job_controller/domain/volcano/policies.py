"""Which action a Volcano Job takes: what happened or holds, matched with the policies of its tasks, then with its own."""

from collections.abc import Iterator
from dataclasses import dataclass

from job_controller.domain.volcano.census import Census, Member
from job_controller.domain.volcano.memory import Edge, Memory
from job_controller.domain.volcano.spec import JobSpec, Policy, Task
from kube import Object, parse_time
from kube.words import counted, verb

ANY_EVENT = "*"
TARGETED = ("RestartPod", "RestartTask", "RestartPartition")
SYNC = "SyncJob"
TRUNCATED_MS = 999
"""A creation time is cut to whole seconds: a pod first seen after a restart may be this much younger than it says."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Something that a policy may speak of; ``since`` is when it began, in milliseconds since the epoch."""

    event: str
    since: int
    task: str = ""
    member: Member | None = None
    exit_code: int | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """An action and why: ``trigger`` is None when a Command asked for it."""

    action: str
    reason: str
    message: str
    trigger: Trigger | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The choices that are due, the most far-reaching first, and when the next one will be due."""

    due: tuple[Choice, ...]
    next_at: int | None


def judge(spec: JobSpec, census: Census, memory: Memory, version: int, now: int) -> Verdict:
    """Match all that happened and holds with the policies. Pods of an earlier version of the job are not asked."""
    due: list[Choice] = []
    times: list[int] = []
    triggers = [*_levels(spec, census, memory, version, now), *_edges(census, memory, version)]
    memory.settle_levels({(trigger.event, _subject(trigger)) for trigger in triggers})
    for trigger in triggers:
        policy = _policy_for(spec, trigger)
        if policy is None or policy.action == SYNC:
            continue
        at = trigger.since + (policy.timeout_ms or 0)
        if at <= now:
            due.append(_choice(policy, trigger, now))
        else:
            times.append(at)
    memory.edges = [edge for edge in memory.edges if _is_spoken_of(spec, edge)]
    due.sort(key=lambda choice: choice.action in TARGETED)
    return Verdict(tuple(due), min(times, default=None))


def _levels(spec: JobSpec, census: Census, memory: Memory, version: int, now: int) -> Iterator[Trigger]:
    for member in census.alive:
        if member.version < version:
            continue
        name, uid = member.pod.name, member.pod.uid
        if member.phase == "Failed":
            code = member.exit_code
            words = f"pod {name} failed" + (f" with exit code {code}" if code else "")
            yield Trigger("PodFailed", memory.held_since("PodFailed", uid, now), member.task, member, code, words)
        elif member.phase == "Pending":
            since = min(memory.held_since("PodPending", uid, now), _created(member.pod, now) + TRUNCATED_MS)
            yield Trigger("PodPending", since, member.task, member, None, f"pod {name} is pending")
    for task in spec.tasks:
        yield from _task_levels(task, census, memory, now)


def _task_levels(task: Task, census: Census, memory: Memory, now: int) -> Iterator[Trigger]:
    members = census.of_task(task.name)
    succeeded = sum(1 for member in members if member.phase == "Succeeded")
    if task.replicas > 0 and succeeded >= task.replicas:
        since = memory.held_since("TaskCompleted", task.name, now)
        words = f"task {task.name} is completed: {succeeded} of {counted(task.replicas, 'pod')} succeeded"
        yield Trigger("TaskCompleted", since, task.name, None, None, words)
    restarts = sum(member.restarts for member in members if member.phase in ("Running", "Pending"))
    if task.max_retry >= 0 and restarts >= task.max_retry:
        since = memory.held_since("TaskFailed", task.name, now)
        words = f"task {task.name} has failed: its containers restarted {counted(restarts, 'time')}, "
        words += f"{task.max_retry} {verb(task.max_retry)} allowed"
        yield Trigger("TaskFailed", since, task.name, None, None, words)


def _edges(census: Census, memory: Memory, version: int) -> Iterator[Trigger]:
    running = {(member.task, member.index) for member in census.alive if member.phase == "Running"}
    for edge in memory.edges:
        member = edge.member
        if member is None:
            words = "the spec of the job changed" if edge.event == "JobUpdated" else "its PodGroup has become Unknown"
            yield Trigger(edge.event, edge.at, words=words)
        elif member.version >= version and (member.task, member.index) not in running:
            yield Trigger(edge.event, edge.at, member.task, member, None, f"pod {member.pod.name} was evicted")


def _policy_for(spec: JobSpec, trigger: Trigger) -> Policy | None:
    task = spec.task(trigger.task)
    for policies in (task.policies if task else (), spec.policies):
        for policy in policies:
            if _matches(policy, trigger):
                return policy
    return None


def _is_spoken_of(spec: JobSpec, edge: Edge) -> bool:
    return _policy_for(spec, Trigger(edge.event, edge.at, edge.member.task if edge.member else "")) is not None


def _matches(policy: Policy, trigger: Trigger) -> bool:
    if policy.exit_code is not None:
        return trigger.event == "PodFailed" and trigger.exit_code == policy.exit_code
    if trigger.event == "PodPending" and policy.timeout_ms is None:
        return False
    return trigger.event in policy.events or ANY_EVENT in policy.events


def _choice(policy: Policy, trigger: Trigger, now: int) -> Choice:
    waited = f" for {(now - trigger.since) / 1000:g} s" if policy.timeout_ms else ""
    words = f"{trigger.words}{waited}; the policy for {_speaks_of(policy)} says {policy.action}"
    return Choice(policy.action, trigger.event, words, trigger)


def _speaks_of(policy: Policy) -> str:
    return f"exit code {policy.exit_code}" if policy.exit_code is not None else ", ".join(policy.events)


def _subject(trigger: Trigger) -> str:
    return trigger.member.pod.uid if trigger.member else trigger.task


def _created(pod: Object, now: int) -> int:
    try:
        return min(now, parse_time(pod.created))
    except ValueError:
        return now
