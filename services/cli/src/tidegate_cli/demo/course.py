"""The course of the demo: what is handed in when, what is done to it, and what has to come of it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube import Manifest
from tidegate.client import Client, ClientError, accepted
from tidegate_cli.demo.board import GOOD_END, Board, JobView, cpus
from tidegate_cli.demo.cast import CAST, RESTARTS, RING, TORCH, VICTIM, WIDE, Act
from tidegate_cli.demo.following import DemoFailed, Following
from tidegate_cli.demo.pod_processes import kill_container
from tidegate_cli.documents import read_documents

CHECKED = "checked: "
"""How the last line begins that a program writes when all that it computed was right."""

NO_ROOM = ": Waiting (NotEnoughResources)"
"""How an explanation's verdict ends where there is not enough room for the minimum of a gang."""

START_SECONDS = 30.0
END_SECONDS = 60.0
SOME_STEPS_SECONDS = 1.5
_POLL_SECONDS = 0.1
_TAIL = 5


@dataclass(frozen=True, slots=True)
class Findings:
    """What came of it: by job what its pods found, why the gang had to wait, and what is not as it should be."""

    results: dict[str, str]
    explanation: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """One demo. ``headline`` tells what the demo itself does, ``detail`` quotes an answer."""

    client: Client
    board: Board
    following: Following
    clock: Callable[[], float]
    headline: Callable[[str], None]
    detail: Callable[[str], None]
    examples: Path

    async def run(self) -> Findings:
        """The whole of it. Raises DemoFailed and ClientError."""
        board, until = self.board, self.following.until
        await until(lambda: board.cpu_milli > 0, START_SECONDS, "the node is ready")
        for act in (RING, TORCH, RESTARTS):
            await self._hand_in(act)
        first = [board.job(act) for act in (RING, TORCH, RESTARTS)]
        await until(lambda: all(job.running_at >= 0 for job in first), START_SECONDS, "the first three jobs run")
        await self._hand_in(WIDE)
        explanation = await self._why_waiting(WIDE)
        await asyncio.sleep(SOME_STEPS_SECONDS)
        await self._kill(VICTIM)
        await until(lambda: VICTIM in board.job(RESTARTS).replaced, START_SECONDS, f"{VICTIM} is replaced")
        await until(
            lambda: all(job.ended and not job.holds_room for job in board.jobs.values()),
            END_SECONDS,
            "all jobs and their pods have ended",
        )
        lines = {act.name: await self._verdicts(act) for act in CAST}
        results = {act.name: result_of(board.job(act), lines[act.name]) for act in CAST}
        return Findings(results, explanation, tuple(problems(board, lines)))

    async def _hand_in(self, act: Act) -> None:
        self.headline(f"apply -f examples/{act.file}: {act.about}")
        manifests = [document.manifest for document in read_documents([str(self.examples / act.file)])]
        accepted(await self.client.apply(manifests))
        self.board.hand_in(act, self.clock())

    async def _why_waiting(self, act: Act) -> tuple[str, ...]:
        """Ask until the answer is that it waits for room; while its pods are still being made there is another one."""
        pods = self.board.job(act).pods
        await self.following.until(lambda: len(pods) == act.pods, START_SECONDS, f"{act.name} has its pods")
        free = cpus(self.board.cpu_milli - self.board.taken_milli)
        self.headline(f"explain job/{act.name}: {free} CPUs are free, and none of its {act.pods} pods has started")
        for _ in range(int(START_SECONDS / _POLL_SECONDS)):
            answer = await self.client.explain(act.key.kind, act.name, act.key.namespace)
            lines = waiting_lines(answer.lines)
            if lines:
                for line in lines[:2]:
                    self.detail(line)
                return lines
            await asyncio.sleep(_POLL_SECONDS)
        raise DemoFailed(f"nothing explains why {act.name} waits; the answer is: {' '.join(answer.lines)}")

    async def _kill(self, pod: str) -> None:
        manifest = await self.client.get("pod", pod, RESTARTS.key.namespace)
        try:
            pid = kill_container(_container_id(manifest), str(manifest["metadata"]["uid"]))
        except (OSError, ValueError) as error:
            raise DemoFailed(f"{pod} cannot be killed: {error}") from None
        self.headline(f"kill -9 {pid}: the process of {pod} is gone in the middle of its work")

    async def _verdicts(self, act: Act) -> dict[str, str]:
        """By pod of a job the line that says what it checked; the last that it wrote where there is none."""
        return {name: await self._verdict(name, act) for name in sorted(self.board.job(act).pods)}

    async def _verdict(self, pod: str, act: Act) -> str:
        try:
            pieces = [piece async for piece in self.client.logs(pod, act.key.namespace, tail=_TAIL)]
        except ClientError as error:
            return str(error)
        return verdict_of(b"".join(pieces).decode(errors="replace"))


def verdict_of(text: str) -> str:
    """The last line that says what was checked, else the last line at all."""
    lines = text.strip().splitlines()
    checked = [line for line in lines if line.startswith(CHECKED)]
    return ["", *lines, *checked][-1]


def waiting_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Of an explanation the first verdict that room is missing, and what stands below it up to the next one."""
    for number, line in enumerate(lines):
        if line.endswith(NO_ROOM):
            below = (number + 1 + offset for offset, text in enumerate(lines[number + 1 :]) if text[:1] != " ")
            return tuple(lines[number : next(below, len(lines))])
    return ()


def result_of(job: JobView, lines: dict[str, str]) -> str:
    """What a job's pods found, in one sentence."""
    found = {pod: line.removeprefix(CHECKED) for pod, line in lines.items()}
    if job.act is RESTARTS:
        return f"{VICTIM}: {found.get(VICTIM, '')}"
    if job.act is WIDE:
        waited = job.placed_at - job.handed_in_at
        revisions = ", ".join(map(str, sorted(job.bound_in)))
        return f"waited {waited:.1f} s, then {job.act.pods} pods started in one decision (revision {revisions})"
    return f"{' / '.join(sorted(set(found.values())))}; checked by all {len(found)} pods"


def problems(board: Board, lines: dict[str, dict[str, str]]) -> list[str]:
    """What did not come out as it should, a sentence each."""
    found = []
    for job in board.jobs.values():
        if job.phase not in GOOD_END:
            found.append(f"{job.act.name} ended as {job.phase}")
        found += [f"{name} ended as {pod.phase}" for name, pod in job.pods.items() if pod.phase != "Succeeded"]
        found += [
            f"{pod} checked nothing; its last line is: {line!r}"
            for pod, line in lines[job.act.name].items()
            if not line.startswith(CHECKED)
        ]
    wide, restarts = board.job(WIDE), board.job(RESTARTS)
    if len(wide.bound_in) != 1:
        found.append(f"{WIDE.name} did not start whole: its pods were bound in revisions {sorted(wide.bound_in)}")
    if RING.name in wide.beside:
        found.append(f"{WIDE.name} started before {RING.name} had ended")
    if restarts.replaced != [VICTIM]:
        found.append(f"of {RESTARTS.name} {', '.join(restarts.replaced) or 'no pod'} was replaced, not just {VICTIM}")
    if "went on with step" not in lines[RESTARTS.name].get(VICTIM, ""):
        found.append(f"{VICTIM} did not go on behind its checkpoint")
    return found


def _container_id(pod: Manifest) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return str(statuses[0].get("containerID") or "")
