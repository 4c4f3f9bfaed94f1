"""Beside a kubelet the agent measures and reports, and goes on where its predecessor was."""

import asyncio
import errno
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from chassis import LoopClock
from chassis.virtual_time import VirtualLoop
from node_agent.domain.usage import NODE, Consumption, Look, UsageSample, look, samples
from node_agent.inventory.machine import Devices
from node_agent.inventory.parts import Gpu
from node_agent.kubelet.agent import KubeletAgent
from node_agent.kubelet.kept_look import KeptLook
from node_agent.kubelet.pod_groups import find_groups
from node_agent.ports import Assignment, Report
from node_agent.settings import AgentSettings

A, B = (f"{digit * 8}-0fda-4b1a-9f6e-{digit * 12}" for digit in "12")
DEVICES = Devices((), (Gpu(0, "GPU-0", "A100", 80 << 30),))
INTERVAL_MS = 60_000


def test_a_pod_that_was_seen_before_is_measured_from_then_on() -> None:
    before = Look(1000, {"a": 4_000_000_000})
    found = samples(before, 3000, {"a": Consumption(5_000_000_000, 7)}, {})
    assert found == (UsageSample("a", 3000, 500, 7),)


def test_a_pod_that_is_new_is_measured_from_when_it_began_if_that_is_known() -> None:
    used = {"a": Consumption(1_000_000_000, 7), "b": Consumption(1_000_000_000, 8)}
    assert samples(Look(0, {}), 3000, used, {"b": 2000}) == (UsageSample("b", 3000, 1000, 8),)


def test_time_that_does_not_pass_measures_nothing() -> None:
    used = {"a": Consumption(1, 1)}
    assert samples(look(1000, used), 1000, used, {}) == ()


class Machine:
    """Recorded control groups, an agent that reads them, and whom it reports to."""

    def __init__(self, folder: Path) -> None:
        self.loop = VirtualLoop()
        asyncio.set_event_loop(self.loop)
        self.folder, self.clock = folder, LoopClock()
        self.reports: list[Report] = []
        self.down = False
        self.task: asyncio.Task[None] | None = None
        for controller in ("cpuacct", "memory"):
            (folder / "cgroup" / controller).mkdir(parents=True)

    def use(self, uid: str, cpu_ms: int) -> None:
        for controller, name, value in (
            ("cpuacct", "cpuacct.usage", cpu_ms * 1_000_000),
            ("memory", "memory.usage_in_bytes", 4096),
        ):
            pod = self.folder / "cgroup" / controller / f"kubepods/pod{uid}"
            pod.mkdir(parents=True, exist_ok=True)
            (pod / name).write_text(f"{value}\n")

    def start(self, boot: str = "first") -> None:
        (self.folder / "boot_id").write_text(boot)
        kept = KeptLook(self.folder / "data/usage.json", self.folder / "boot_id")
        settings = AgentSettings("n1", self.folder, usage_interval_ms=INTERVAL_MS)
        groups = find_groups(self.folder / "cgroup")
        self.agent = KubeletAgent(settings, groups, DEVICES, kept, self, self.clock.now)
        self.task = self.loop.create_task(self.agent.run())
        self.loop.settle()

    def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        self.loop.settle()

    def wait(self, seconds: float) -> None:
        self.loop.advance(round(seconds * 1000))

    def last(self, uid: str) -> UsageSample:
        """The newest sample of a pod."""
        return next(one for report in reversed(self.reports) for one in report.usage if one.uid == uid)

    async def report(self, report: Report) -> None:
        if self.down:
            raise TimeoutError
        self.reports.append(report)

    async def secret(self, namespace: str, name: str) -> dict[str, bytes]:
        raise AssertionError("an agent beside a kubelet needs no Secret")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.stop()
    made.loop.close()
    asyncio.set_event_loop(None)


def test_pods_and_the_node_are_reported_at_every_interval(machine: Machine) -> None:
    machine.use(A, 1000)
    machine.start()
    machine.wait(30)
    machine.use(A, 31_000)
    machine.wait(31)

    assert machine.last(A) == UsageSample(A, machine.last(A).at, 500, 4096)
    assert machine.last(NODE).memory_bytes > 0
    assert all(report.inventory == DEVICES for report in machine.reports)
    assert all(not report.pods and not report.gone for report in machine.reports)


@pytest.mark.parametrize(("said", "seconds"), [(10, 10), ("x", 60), (0, 60), (None, 60)])
def test_how_often_use_is_told_is_a_rule_of_the_node(machine: Machine, said: object, seconds: int) -> None:
    machine.use(A, 1000)
    machine.start()
    machine.agent.assign(Assignment("n1", 1, (), slo={"extensions": {"metricReportIntervalSeconds": said}}))
    machine.wait(241)
    times = [one.at for report in machine.reports for one in report.usage if one.uid == A]
    assert {later - earlier for earlier, later in pairwise(times)} == {seconds * 1000}


def test_a_pod_that_came_since_has_used_all_of_its_time_since(machine: Machine) -> None:
    machine.start()
    machine.wait(30)
    machine.use(B, 6000)
    machine.wait(31)

    assert machine.last(B).cpu_milli == 100


def test_what_was_used_while_no_agent_ran_is_in_the_first_sample_of_the_next(machine: Machine) -> None:
    machine.use(A, 0)
    machine.start()
    machine.wait(61)
    machine.stop()
    machine.use(A, 12_000)
    machine.wait(20)
    machine.start()
    machine.wait(40)

    times = [sample.at for report in machine.reports for sample in report.usage if sample.uid == A]
    assert machine.last(A).cpu_milli == 200
    assert times[1] - times[0] == INTERVAL_MS


@pytest.mark.parametrize(("away", "boot"), [(10, "second"), (3600, "first")])
def test_a_look_of_another_boot_or_of_long_ago_is_not_gone_on_from(machine: Machine, away: float, boot: str) -> None:
    machine.use(A, 5000)
    machine.start()
    machine.stop()
    machine.wait(away)
    machine.use(A, 7000)
    machine.start(boot)
    machine.wait(59)
    assert not [sample for report in machine.reports for sample in report.usage]

    machine.use(A, 13_000)
    machine.wait(2)

    assert machine.last(A).cpu_milli == 100


@pytest.mark.parametrize("left", ["{", "[]", '{"boot": "first"}', '{"boot": "first", "at": "?", "cpu_ns": []}'])
def test_a_kept_look_that_makes_no_sense_is_none(machine: Machine, left: str) -> None:
    (machine.folder / "data").mkdir()
    (machine.folder / "data/usage.json").write_text(left)
    machine.use(A, 0)
    machine.start()
    machine.use(A, 6000)
    machine.wait(61)
    assert machine.last(A).cpu_milli == 100


def test_measuring_goes_on_though_nothing_can_be_kept_or_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each trouble is told once; a full disk costs nothing but the next agent's first sample."""

    def no_room(self: KeptLook, look: Look) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def unreadable() -> Consumption:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(KeptLook, "save", no_room)
    machine.use(A, 0)
    machine.start()
    with monkeypatch.context() as patch:
        patch.setattr("node_agent.kubelet.agent.machine_use", unreadable)
        machine.wait(200)
        assert not any(report.usage for report in machine.reports)
    machine.use(A, 24_000)
    machine.wait(60)
    assert machine.last(A).cpu_milli == 100
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "look_not_kept",
        "use_not_measured",
    ]


def test_a_report_that_is_not_stored_is_made_again_with_the_newest_samples(machine: Machine) -> None:
    machine.use(A, 0)
    machine.start()
    machine.down = True
    machine.wait(70)
    machine.use(A, 6000)
    machine.wait(60)
    machine.down = False
    machine.wait(11)

    assert machine.last(A).cpu_milli == 100
