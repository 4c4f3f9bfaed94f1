"""Reports are gathered, said again until stored, and always the newest."""

import asyncio
from pathlib import Path

from node_agent.ports import PodReport, Report
from node_agent.reporter import Reporter
from node_agent.settings import AgentSettings


class Upstream:
    def __init__(self) -> None:
        self.stored: list[Report] = []
        self.tries = 0
        self.fail = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def report(self, report: Report) -> None:
        self.tries += 1
        await self.gate.wait()
        if self.fail:
            self.fail -= 1
            raise TimeoutError
        self.stored.append(report)


async def started(upstream: Upstream, phases: dict[str, str]) -> tuple[Reporter, asyncio.Task[None]]:
    def look_up(uid: str) -> tuple[PodReport | None, bool]:
        phase = phases.get(uid)
        return (PodReport(uid, "ns", uid, {"phase": phase}) if phase else None), phase == "gone"

    settings = AgentSettings("n", Path(), report_retry_ms=1)
    reporter = Reporter(settings, upstream, look_up, lambda report: None)  # type: ignore[arg-type]
    return reporter, asyncio.create_task(reporter.run())


async def settle(upstream: Upstream, count: int) -> None:
    async with asyncio.timeout(5):
        while len(upstream.stored) < count:
            await asyncio.sleep(0.001)


async def test_what_changes_together_is_said_together() -> None:
    upstream = Upstream()
    reporter, task = await started(upstream, {"a": "Running", "b": "gone"})
    for uid in ("a", "b", "a", "unknown"):
        reporter.pod_changed(uid)
    await settle(upstream, 1)
    assert [pod.uid for pod in upstream.stored[0].pods] == ["a", "b"]
    assert upstream.stored[0].gone == ("b",)
    task.cancel()


async def test_a_report_that_was_not_stored_is_said_again_with_the_newest_state() -> None:
    upstream, phases = Upstream(), {"a": "Pending"}
    upstream.fail = 3
    upstream.gate.clear()
    reporter, task = await started(upstream, phases)
    reporter.pod_changed("a")
    while not upstream.tries:
        await asyncio.sleep(0)
    phases |= {"a": "Running", "b": "Running"}
    reporter.pod_changed("a")
    reporter.pod_changed("b")
    upstream.gate.set()
    await settle(upstream, 1)
    assert [(pod.uid, pod.status["phase"]) for pod in upstream.stored[0].pods] == [("a", "Running"), ("b", "Running")]
    assert upstream.tries == 4
    task.cancel()
