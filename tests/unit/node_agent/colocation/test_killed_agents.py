"""An agent dies at any moment, its file is lost or has no room: its successor knows what has to be given back."""

import asyncio
import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.node_agent.colocation.test_knob_writer import Kernel

from kube import Manifest
from node_agent import colocating, kept_rules
from node_agent.colocating import Colocation
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.samples import Sample, Use
from node_agent.inventory.hardware import Hardware
from node_agent.ports import Assignment
from node_agent.runtime import guard
from node_agent.runtime.guard import Raw
from node_agent.runtime.knob_files import KnobFilesV1
from node_agent.runtime.knob_writer import KnobWriter

RULES: Manifest = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 10},
    "resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True}}, "lsClass": {"memoryQOS": {"enable": True}}},
    "cpuBurstStrategy": {"policy": "cpuBurstOnly"},
}
NODE: Manifest = {"status": {"capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {"cpu": "3", "memory": "7Gi"}}}


def pod(name: str, qos: str, **resources: Manifest) -> Manifest:
    labels = {"koordinator.sh/qosClass": qos}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "resources": resources}]}}


WEB = pod("web", "LS", requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "2Gi"})
PODS = (WEB, pod("hog", "BE"), pod("daemon", "SYSTEM"))


class Killed(BaseException):
    """The agent is gone, in the midst of what it did."""


class Machine(Kernel):
    """Groups whose folders are their names. ``left`` is how many more writes the agent lives for."""

    own = True

    def __init__(self) -> None:
        super().__init__()
        self.left: float = float("inf")

    def write(self, folder: str, name: str, text: str) -> None:
        super().write(folder, name, text)
        self.left -= 1
        if self.left <= 0:
            raise Killed

    def raw(self, folder: str, name: str, text: str) -> list[Raw]:
        return [Raw(f"{folder}/{name}", text)]

    def folder(self, group: Group) -> str:
        return "/".join(group)

    def program(self, group: str) -> str:
        return group


class Look:
    """Sees what it is told."""

    def __init__(self) -> None:
        self.sample: Sample | None = None
        self.broken = False

    def look(self, pods: Any, slo: Any, now: int) -> None:
        if self.broken:
            raise OSError(errno.EMFILE, "Too many open files")
        self.sample = Sample(now, Use(1000, 1 << 30), {uid: Use(100, 1 << 20) for uid in pods})

    def online_ns(self) -> int | None:
        return None


class Clock:
    now = 1_000_000

    def __call__(self) -> int:
        self.now += 1000
        return self.now


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Colocation]:
    """An agent, the next of those on this machine; guards are met in another test."""
    monkeypatch.setattr(guard.Guard, "stand", lambda self: None)

    def made(machine: Machine, clock: Clock | None = None, look: Look | None = None) -> Colocation:
        parts: Any = (Hardware(()), machine, look or Look(), KnobWriter(machine), tmp_path, clock or Clock(), print)
        return Colocation(*parts)

    return made


def keep(one: Colocation, slo: Manifest, *pods: Manifest) -> None:
    one.assign(Assignment("n", 1, pods or PODS, slo=slo, node_object=NODE))
    for _ in range(3):
        one.round()


def as_it_was(agent: Callable[..., Colocation]) -> dict[tuple[str, str], str]:
    """What stands in the files of a machine on which rules were switched on and off in order."""
    machine = Machine()
    one = agent(machine)
    keep(one, RULES)
    held = dict(machine.texts)
    assert held["besteffort//", "cpu.idle"] == "1" and held["besteffort/daemon/", "cpu.max"] == "300000 100000"
    one.give_back()
    return machine.texts


def test_killed_between_any_two_writes_it_is_followed_by_one_that_gives_all_back(
    agent: Callable[..., Colocation],
) -> None:
    before = as_it_was(agent)
    count = 0
    while True:
        count += 1
        machine = Machine()
        machine.left = count
        try:
            keep(agent(machine), RULES)
        except Killed:
            machine.left = float("inf")
        else:
            break
        successor = agent(machine)
        keep(successor, {})
        successor.give_back()
        assert {key: before[key] for key in machine.texts} == machine.texts, f"killed at write {count}"
    assert count > len(before) // 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_it_keeps_what_it_will_write_nothing_is_lost(
    agent: Callable[..., Colocation], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before, machine, replace = as_it_was(agent), Machine(), kept_rules._replace
    keep(agent(machine), {})

    def dying(file: Path, content: Any) -> None:
        if moment == "after":
            replace(file, content)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(kept_rules, "_replace", dying)
        keep(agent(machine), RULES)
    successor = agent(machine)
    keep(successor, {})
    successor.give_back()
    assert {key: before.get(key) for key in machine.texts} == machine.texts


@pytest.mark.parametrize(
    "left",
    [
        b"", b"{", b"\xff\xfe", b"[]", b"{}", b'{"held": 5}',
        json.dumps({"held": {"quota_milli": None, "cpus": []}, "raised": [], "asked": [], "paused_until": [], "written": []}).encode(),
        json.dumps({"held": {"quota_milli": "x", "cpus": []}, "raised": [], "asked": [], "paused_until": {}, "written": []}).encode(),
        json.dumps({"held": {"quota_milli": 1, "cpus": []}, "raised": [["a", "b", {"quota_us": "?", "met_at": 1}]], "asked": [],
                    "paused_until": {}, "written": []}).encode(),
        json.dumps({"held": {"quota_milli": 1, "cpus": []}, "raised": [], "asked": [], "paused_until": {},
                    "written": [["", "", "", ["cpu.max"]]]}).encode(),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_no_reason_to_leave_pods_held(
    agent: Callable[..., Colocation], tmp_path: Path, left: bytes
) -> None:
    """What holds pods back shows in their groups."""
    machine = Machine()
    keep(agent(machine), RULES)
    (tmp_path / "rules.json").write_bytes(left)
    keep(agent(machine), {})
    assert machine.texts["besteffort//", "cpu.max"] == "max 100000" and machine.texts["besteffort//", "cpu.idle"] == "0"


def test_without_room_rules_hold_all_the_same_and_it_is_told_once(
    agent: Callable[..., Colocation], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    machine = Machine()
    with monkeypatch.context() as patch:
        patch.setattr(kept_rules, "_replace", _no_room)
        keep(agent(machine), RULES)
        assert machine.texts["besteffort//", "cpu.max"] == "2000 100000"
        assert [record.message for record in caplog.records] == ["rules_not_kept"]
    keep(agent(machine), {})
    assert machine.texts["besteffort//", "cpu.max"] == "max 100000" and (tmp_path / "rules.json").exists()


def _no_room(file: Path, content: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_does_not_make_a_guard_believe_that_nobody_is_there(
    agent: Callable[..., Colocation], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine, file = Machine(), tmp_path / "rules.back.json"
    one = agent(machine)
    keep(one, {})
    os.utime(file, ns=(1, 1))
    monkeypatch.setattr(kept_rules, "_replace", _no_room)
    keep(one, RULES)
    assert guard.since_boot_ns() - file.stat().st_mtime_ns < 60e9


async def test_nothing_is_let_loose_before_it_is_known_what_holds(agent: Callable[..., Colocation]) -> None:
    """The successor of a killed agent waits for what is assigned, and forgets nothing until then."""
    machine = Machine()
    keep(agent(machine), RULES)
    held, count = dict(machine.texts), len(machine.writes)
    successor = agent(machine)
    task = asyncio.create_task(successor.run())
    await asyncio.sleep(0.05)
    assert machine.texts == held and len(machine.writes) == count
    successor.assign(Assignment("n", 1, PODS, slo={}, node_object=NODE))
    await asyncio.sleep(0.05)
    task.cancel()
    assert machine.texts["besteffort//", "cpu.max"] == "max 100000"
    assert machine.texts["burstable/web/main", "cpu.max.burst"] == "0"


async def test_an_agent_that_nobody_tells_anything_gives_back_after_a_while(
    agent: Callable[..., Colocation], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So does one that cannot decide any more; here a while is short."""
    machine, file = Machine(), tmp_path / "cpu.max"
    monkeypatch.setattr(Machine, "raw", lambda self, folder, name, text: [Raw(str(tmp_path / name), text)])
    keep(agent(machine), RULES)
    file.write_text("held")
    monkeypatch.setattr(colocating, "GIVE_BACK_SECONDS", 0.05)
    monkeypatch.setattr(colocating, "LOOK_AGAIN_ROUNDS", 0)
    task = asyncio.create_task(agent(machine).run())
    async with asyncio.timeout(5):
        while file.read_text() == "held":
            await asyncio.sleep(0.01)
    task.cancel()


def test_parts_of_the_network_are_not_had_here_and_that_is_said_once(
    agent: Callable[..., Colocation], caplog: pytest.LogCaptureFixture
) -> None:
    one = agent(Machine())
    asked = {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": 50}}}}
    for slo in (asked, asked, {}, asked):
        keep(one, slo)
    told = [record for record in caplog.records if record.message == "network_not_shared_out"]
    assert [record.__dict__["missing"] for record in told] == ["the uplink was not looked for"] * 2


def test_an_agent_that_ends_in_order_leaves_nothing(agent: Callable[..., Colocation], tmp_path: Path) -> None:
    machine = Machine()
    one = agent(machine)
    keep(one, RULES)
    one.give_back()
    assert machine.texts["besteffort//", "cpu.max"] == "max 100000" and list(tmp_path.iterdir()) == []
    one.assign(Assignment("n", 2, PODS, slo=RULES, node_object=NODE))
    one.put_in_force("hog")
    assert machine.texts["besteffort//", "cpu.max"] == "max 100000", "nothing holds any more"


def test_use_that_cannot_be_read_is_told_once_and_the_stale_rule_holds_until_it_can(
    agent: Callable[..., Colocation], caplog: pytest.LogCaptureFixture
) -> None:
    """Online pods are taken to use what they ask for, or used last: of 4 CPUs 70 % less 1 and 0.1, and 1 that is reserved."""
    machine, clock, look = Machine(), Clock(), Look()
    rules = {"resourceUsedThresholdWithBE": {**RULES["resourceUsedThresholdWithBE"], "cpuSuppressThresholdPercent": 70,
                                             "memoryEvictThresholdPercent": 1}}  # fmt: skip
    one = agent(machine, clock, look)
    keep(
        one,
        {"resourceUsedThresholdWithBE": {**rules["resourceUsedThresholdWithBE"], "memoryEvictThresholdPercent": 99}},
    )
    quota = int(machine.texts["besteffort//", "cpu.max"].split()[0])
    look.broken = True
    clock.now += 11_000
    keep(one, rules)
    assert machine.texts["besteffort//", "cpu.max"] == "70000 100000" and quota > 70_000
    assert one.asked_to_leave == 0, "nobody is evicted for what was measured too long ago"
    assert [record.message for record in caplog.records] == ["use_not_read"]
    look.broken = False
    keep(one, rules)
    assert int(machine.texts["besteffort//", "cpu.max"].split()[0]) > 70_000 and one.asked_to_leave == 1


def test_a_guard_gives_back_what_nobody_keeps_and_ends(tmp_path: Path) -> None:
    """Also in groups below: of version 1 a CPU set holds those that are in it."""
    (tmp_path / "tier/pod").mkdir(parents=True)
    for file in ("tier/cpuset.cpus", "tier/pod/cpuset.cpus", "tier/cpu.cfs_quota_us"):
        (tmp_path / file).write_text("0")
    files = KnobFilesV1(dict.fromkeys(("cpu", "cpuset"), tmp_path))
    (tmp_path / "tier/cpu.cfs_period_us").write_text("")
    kept = kept_rules.KeptRules(tmp_path, KnobWriter(files).raw)
    kept._guard = guard.Guard(tmp_path / "rules.back.json", 2)
    first = {"tier": {"cpuset.cpus": "0-3", "cpu.max": "max 100000"}, "gone": {"cpu.max": "max 100000"}}

    def save() -> None:
        kept.save(kept_rules.Kept(), {Group(Tier.BEST_EFFORT): first["tier"]}, lambda: first, (), time.monotonic_ns())

    save()
    until = time.monotonic() + 3.5
    while time.monotonic() < until:  # the rules are kept
        kept._saved = None
        save()
        time.sleep(0.2)
    assert (tmp_path / "tier/cpu.cfs_quota_us").read_text() == "0"
    guard.Guard(tmp_path / "rules.back.json", 2).stand()  # there is one already
    until = time.monotonic() + 20
    while guard.is_guarded(tmp_path / "rules.back.json"):
        assert time.monotonic() < until
        time.sleep(0.05)
    said = {
        file: (tmp_path / "tier" / file).read_text() for file in ("cpuset.cpus", "pod/cpuset.cpus", "cpu.cfs_quota_us")
    }
    assert said == {"cpuset.cpus": "0-3", "pod/cpuset.cpus": "0-3", "cpu.cfs_quota_us": "-1"}
    assert not (tmp_path / "rules.back.json").exists()
    save()
    until = time.monotonic() + 20
    while not guard.is_guarded(tmp_path / "rules.back.json"):
        assert time.monotonic() < until
        kept._saved = None
        save()
        time.sleep(0.05)
    kept.forget()
    assert not guard.is_guarded(tmp_path / "rules.back.json")
