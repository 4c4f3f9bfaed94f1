"""How the uplink is shared out, and what the programs are told that do it."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.node_agent.colocation.conftest import machine, pod
from tests.unit.node_agent.colocation.test_killed_agents import Clock, Look
from tests.unit.node_agent.colocation.test_knob_writer import Kernel

from kube import Manifest
from node_agent import colocating, kept_rules
from node_agent.colocating import Colocation
from node_agent.domain.colocation.groups import NET_CLASS, Group, Tier
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.network import (
    LEAST_BITS,
    NetworkPlan,
    TrafficClass,
    class_id,
    class_ids,
    lacking,
    network_plan,
    not_kept,
)
from node_agent.domain.colocation.network_rules import Sorting, Uplink
from node_agent.domain.colocation.node_slo import NodeSlo, node_slo
from node_agent.domain.colocation.pods import node_pod
from node_agent.inventory.hardware import Hardware
from node_agent.inventory.uplink import find_uplink, own_uplink
from node_agent.ports import Assignment
from node_agent.runtime import guard
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.network_classes import NetworkClasses

MEGA = 1_000_000
OURS = {"metadata": {"uid": "ours", "labels": {"koordinator.sh/qosClass": "BE"}}}


def rules(total: object = "100M", **classes: Manifest) -> NodeSlo:
    qos = {f"{name}Class": {"networkQOS": {"enable": True, **part}} for name, part in classes.items()}
    return node_slo({"resourceQOSStrategy": qos, "systemStrategy": {"totalNetworkBandwidth": total}})


def wired(sorting: Sorting = Sorting.PATH, bits: int = 0, missing: str = "") -> Machine:
    return machine(4, uplink=Uplink("eth0", bits, sorting, missing=missing))


def test_each_class_has_what_it_is_guaranteed_and_no_more_than_its_limit() -> None:
    plan = network_plan(rules(ls={"egressRequest": 50}, be={"egressRequest": "5M", "egressLimit": 20}), wired(), ())
    assert plan is not None and (plan.device, plan.total) == ("eth0", 100 * MEGA)
    assert plan.classes == (
        TrafficClass(2, 45 * MEGA, 100 * MEGA, 0),
        TrafficClass(4, 50 * MEGA, 100 * MEGA, 2),
        TrafficClass(5, 5 * MEGA, 20 * MEGA, 3),
    )


def test_guarantees_of_more_than_there_is_are_cut_and_nobody_is_left_with_nothing() -> None:
    plan = network_plan(rules(ls={"egressRequest": 100}, be={"egressRequest": 100, "egressLimit": "1k"}), wired(), ())
    assert plan is not None
    assert [(one.rate, one.ceiling) for one in plan.classes] == [
        (LEAST_BITS, 100 * MEGA),
        (50 * MEGA, 100 * MEGA),
        (LEAST_BITS, LEAST_BITS),
    ]


@pytest.mark.parametrize("nonsense", ["much", -3, None, "", {"a": 1}, 100.0, float("nan"), float("inf")])
def test_a_limit_that_says_nothing_holds_nobody(nonsense: object) -> None:
    plan = network_plan(rules(be={"egressLimit": nonsense}), wired(), ())
    assert plan is not None and plan.classes[-1].ceiling == 100 * MEGA


def test_pods_are_known_by_their_address_or_else_by_their_group() -> None:
    routed = {"status": {"podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]}}
    pods = [
        pod("web", "LS", hostNetwork=True),
        pod("batch", "BE"),
        pod("daemon", "SYSTEM"),
    ]
    manifest = {"metadata": {"uid": "own", "labels": {"koordinator.sh/qosClass": "BE"}}, "spec": {"containers": []}}
    loopback = {"status": {"podIP": "127.4.0.1"}}
    pods += [node_pod({**manifest, **routed}), node_pod({**manifest, **OURS, **loopback})]
    plan = network_plan(rules(be={}), wired(), pods)
    assert plan is not None
    assert plan.addresses == {5: ("10.0.0.7", "fd00::7")}
    assert plan.groups == {5: (Group(Tier.BEST_EFFORT, "batch"), Group(Tier.BEST_EFFORT, "ours"))}


def test_with_version_1_containers_carry_a_class_id_where_net_cls_is_mounted() -> None:
    batch = pod("batch", "BE", hostNetwork=True)
    knobs = class_ids(rules(be={}), wired(Sorting.CLASS_ID), [batch, pod("web", "LS")])
    assert knobs == {batch.group.of("main"): {NET_CLASS: str(0x71DE0005)}} and class_id(5) == 0x71DE0005
    assert class_ids(rules(be={}), wired(Sorting.PATH), [batch]) == {} == class_ids(rules(), wired(), [batch])


def test_what_is_missing_is_said() -> None:
    asked, unknown = rules(be={}), rules("0", be={})
    assert lacking(asked, wired()) == "" == lacking(rules(), wired(missing="no program tc"))
    assert lacking(asked, wired(missing="no program tc")) == "no program tc"
    assert "totalNetworkBandwidth" in lacking(unknown, wired())
    assert lacking(unknown, wired(bits=10 * MEGA)) == "", "the hardware says what it carries"
    assert network_plan(asked, wired(missing="no program tc"), ()) is None
    assert "comes in" in not_kept(rules(be={"ingressLimit": 50}), wired())
    assert not_kept(rules(be={"ingressLimit": 100, "ingressRequest": 0}), wired()) == ""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``tc`` and an ``nft`` that write down what they are told, and keep one device; the folder of their notes."""
    notes = tmp_path / "notes"
    notes.mkdir()
    script = f"""#!{sys.executable} -IS
import json, pathlib, sys
notes, words = pathlib.Path({str(notes)!r}), sys.argv[1:]
name = pathlib.Path(sys.argv[0]).name
said = sys.stdin.read() if words[-1] == "-" else ""
with (notes / "told").open("a") as told:
    told.write(json.dumps([name, words, said]) + "\\n")
if (notes / "broken").exists() and name == "nft" and words[0] == "-f":
    sys.exit("Error: Could not process rule: No such file or directory\\nmore")
def keep(what, text):
    (notes / what).write_text(text)
def kept(what):
    return (notes / what).read_text() if (notes / what).exists() else ""
if name == "nft":
    keep("table", said) if words[0] == "-f" else keep("table", "") if words[0] == "delete" else print(kept("table"))
elif words[0] == "-batch":
    keep("qdisc", "qdisc htb 71de: dev eth0 root refcnt 2 r2q 10 default 0x2\\n")
    keep("class", "".join("class htb " + line.split("classid ")[1] + "\\n" for line in said.splitlines() if "classid" in line))
elif words[1] == "del":
    if "71de" not in kept("qdisc"):
        sys.exit("Error: Invalid handle.")
    keep("qdisc", ""), keep("class", "")
else:
    print(kept(words[0]) or "qdisc mq 0: dev eth0 root", end="")
"""
    for name in ("tc", "nft"):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return notes


def told(notes: Path) -> list[list[str]]:
    lines = [json.loads(line) for line in (notes / "told").read_text().splitlines()]
    (notes / "told").write_text("")
    return [[name, *words] for name, words, _ in lines]


@pytest.fixture
def plan() -> NetworkPlan:
    found = network_plan(rules(be={"egressLimit": "5M"}), wired(), [pod("batch", "BE"), pod("gone", "BE")])
    assert found is not None
    return found


@pytest.fixture
def classes(programs: Path, tmp_path: Path) -> Callable[[], NetworkClasses]:
    (tmp_path / "mount/tidegate/batch").mkdir(parents=True)
    uplink = Uplink("eth0", below="tidegate")
    return lambda: NetworkClasses(lambda group: group.pod, uplink, tmp_path / "mount")


def settle(one: NetworkClasses, plan: NetworkPlan | None, look: bool = False) -> None:
    one.start(plan, look)
    one.wait()


def test_what_stands_is_not_written_again_and_what_differs_is(
    classes: Callable[[], NetworkClasses], plan: NetworkPlan, programs: Path
) -> None:
    one = classes()
    settle(one, plan)
    assert "qdisc" in (programs / "qdisc").read_text() and one.missing == ""
    table = (programs / "table").read_text()
    assert 'socket cgroupv2 level 2 "tidegate/batch" meta priority set 71de:5 ;' in table and "gone" not in table
    told(programs)
    settle(one, plan)
    assert told(programs) == [], "not even asked"
    settle(one, plan, look=True)
    assert not [words for words in told(programs) if words[1] in ("-batch", "-f")]
    (programs / "class").write_text("class htb 71de:5 somebody else's\n")
    settle(one, plan, look=True)
    assert [words[1] for words in told(programs) if words[1] in ("-batch", "-f")] == ["-batch", "-f"]
    settle(one, None)
    assert (programs / "qdisc").read_text() == (programs / "table").read_text() == ""


def test_it_holds_as_a_whole_or_not_at_all(
    classes: Callable[[], NetworkClasses], plan: NetworkPlan, programs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = classes()
    (programs / "broken").touch()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            settle(one, plan, look=True)
    assert [record.__dict__["missing"] for record in caplog.records] == [
        "nft: Error: Could not process rule: No such file or directory"
    ]
    assert (programs / "qdisc").read_text() == "", "nobody is held by half of it"
    (programs / "broken").unlink()
    settle(one, plan, look=True)
    assert one.missing == "" and (programs / "qdisc").read_text()


def test_a_guard_and_a_successor_take_back_what_one_that_was_killed_has_left(
    classes: Callable[[], NetworkClasses], plan: NetworkPlan, programs: Path, tmp_path: Path
) -> None:
    one, back = classes(), tmp_path / "back.json"
    steps = [guard.Raw(str(tmp_path / "file"), "1"), *one.undo(plan)]
    back.write_text(json.dumps(steps))
    (tmp_path / "file").write_text("0")
    settle(one, plan)
    assert guard.read(back) == steps and one.undo(None) == one.undo(plan), "for as long as it stands"
    guard.give_back(guard.read(back))
    assert (programs / "qdisc").read_text() == "" and (tmp_path / "file").read_text() == "1"

    settle(classes(), plan)
    settle(classes(), None)
    assert (programs / "qdisc").read_text() == "", "a successor whose rules are off asks what is there"
    settle(one := classes(), plan)
    one.write(None)
    assert (programs / "qdisc").read_text() == "" and one.undo(None) == ()


def test_somebody_elses_discipline_is_left_alone(
    classes: Callable[[], NetworkClasses], plan: NetworkPlan, programs: Path
) -> None:
    (programs / "qdisc").write_text("qdisc fq 8001: dev eth0 root refcnt 2 limit 10000p\n")
    one = classes()
    settle(one, plan)
    assert "a queueing discipline of his own: fq" in one.missing
    assert "fq" in (programs / "qdisc").read_text()


def test_the_uplink_is_the_device_of_the_default_route(tmp_path: Path, programs: Path) -> None:
    assert find_uplink(Sorting.PATH, root=tmp_path).missing == "no default route"
    route = tmp_path / "proc/net/route"
    route.parent.mkdir(parents=True)
    head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
    lines = (
        "wlan0 00000000 0101A8C0 0003 0 0 600 00000000 0 0 0\n",
        "eth0 00000000 0101A8C0 0003 0 0 100 00000000 0 0 0\n",
    )
    route.write_text(head + "".join(lines))
    device = tmp_path / "sys/class/net/eth0"
    device.mkdir(parents=True)
    for name, text in (("ifindex", "2"), ("iflink", "2"), ("speed", "10000")):
        (device / name).write_text(text)
    assert find_uplink(Sorting.PATH, "tidegate", tmp_path) == Uplink("eth0", 10_000 * MEGA, Sorting.PATH, "tidegate")
    assert "share" in own_uplink(1, "tidegate", tmp_path).missing and own_uplink(2, "tidegate", tmp_path).missing == ""
    (device / "iflink").write_text("17")
    assert "one end of a pair" in find_uplink(Sorting.PATH, root=tmp_path).missing
    (device / "lower_eth1").mkdir()
    assert find_uplink(Sorting.PATH, root=tmp_path).missing == "", "a VLAN stands on a device that is here"


def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node_agent.inventory.uplink.found", lambda program: None)
    route = tmp_path / "proc/net/route"
    route.parent.mkdir(parents=True)
    route.write_text("head\neth0 00000000 0 0003 0 0 100 00000000 0 0 0\n")
    assert find_uplink(Sorting.PATH, root=tmp_path).missing == "no program tc and none nft"


def test_an_agent_keeps_how_to_take_it_back_before_it_does_it_and_shows_that_it_lives(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is asked of this node, so nothing else would wake the agent."""
    monkeypatch.setattr(guard.Guard, "stand", lambda self: None)
    monkeypatch.setattr(kept_rules, "SAVE_EVERY_MS", 0)
    monkeypatch.setattr(colocating, "ROUND_MS", 10)
    back = tmp_path / "rules.back.json"
    known: list[bool] = []
    shape = NetworkClasses.start

    def start(self: NetworkClasses, plan: NetworkPlan | None, look: bool = False) -> None:
        known.append("qdisc" in back.read_text())
        shape(self, plan, look)

    monkeypatch.setattr(NetworkClasses, "start", start)
    kernel = Kernel()
    layout: Any = SimpleNamespace(own=True, folder=lambda group: group.pod, program=str)
    parts: Any = (layout, Look(), KnobWriter(kernel), tmp_path, Clock(), print)
    one = Colocation(Hardware((), uplink=Uplink("eth0")), *parts)
    asked = {
        "resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": 50}}},
        "systemStrategy": {"totalNetworkBandwidth": "1G"},
    }
    manifest = {"metadata": {"uid": "batch", "labels": {"koordinator.sh/qosClass": "BE"}}, "spec": {"containers": []}}

    async def live() -> None:
        task = asyncio.create_task(one.run())
        one.assign(Assignment("n", 1, (manifest,), slo=asked))
        while not one.network_classes or not (programs / "qdisc").exists():
            await asyncio.sleep(0.01)
        seen = back.stat().st_mtime_ns
        while back.stat().st_mtime_ns == seen:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(live(), 10))
    one.give_back()
    assert known[0] and (programs / "qdisc").read_text() == "" and not back.exists()
