"""The uplink of a node is shared out by ``tc`` and ``nft`` on a kernel with cgroup version 2, and is as it was afterwards.

On a virtual machine, whose kernel has what this one may lack. Its uplink is a device that drops what it is given (``dummy``):
what is counted is what the classes let through.
"""

import json
import os
from pathlib import Path

import pytest
from lab_programs import NoLab
from test_cgroup_v2 import code
from virtual_machine import run

pytestmark = pytest.mark.timeout(400)
MODULES = (
    "libcrc32c", "nfnetlink", "nf_tables", "nf_socket_ipv4", "nf_socket_ipv6", "nft_socket", "sch_htb", "dummy", "veth",
)  # fmt: skip
SECONDS, TOTAL_BITS, LIMIT_BITS = 4, 80_000_000, 2_000_000
PROGRAM = """
import asyncio, json, socket, subprocess, time
from pathlib import Path
from node_agent.domain.colocation.groups import NET_CLASS
from node_agent.domain.colocation.machine import machine_of
from node_agent.domain.colocation.network import class_id, network_plan
from node_agent.domain.colocation.network_rules import Sorting, Uplink
from node_agent.domain.colocation.node_slo import node_slo
from node_agent.domain.colocation.pods import node_pod
from node_agent.runtime.knob_files import KnobFilesV1
from node_agent.runtime.network_classes import NetworkClasses
from node_agent.close_look import CloseLook
from node_agent.colocating import Colocation
from node_agent.inventory.hardware import find_hardware
from node_agent.inventory.uplink import find_uplink
from node_agent.kubelet.pod_groups import find_groups
from node_agent.layouts import KubeletLayout
from node_agent.ports import Assignment
from node_agent.runtime import guard
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.use_files import UseFiles

os.environ["PATH"] = "/usr/sbin:/sbin:/usr/bin:/bin"
os.makedirs("/sys", exist_ok=True)
mount("sysfs", "/sys")
mount("cgroup2", "/sys/fs/cgroup")
mount("tmpfs", "/kept")
for name in MODULES:
    with open(f"/modules/{name}.ko", "rb") as file:
        if libc.syscall(313, file.fileno(), b"", 0):
            print("no module", name, ctypes.get_errno())

def said(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout + done.stderr

os.makedirs("/dev", exist_ok=True)
if not os.path.exists("/dev/null"):
    os.mknod("/dev/null", 0o20666, os.makedev(1, 3))
for words in ("link add up0 type dummy", "addr add 10.9.0.1/24 dev up0", "link set up0 up",
              "link set lo up", "route add default dev up0"):
    print(said("ip", *words.split()), end="")

top = Path("/sys/fs/cgroup")
web, crunch, own = UIDS
places = {web: f"kubepods/burstable/pod{web}/{'a' * 64}", crunch: f"kubepods/besteffort/pod{crunch}/{'b' * 64}"}
for place in places.values():
    folder = top
    for part in place.split("/"):
        (folder / "cgroup.subtree_control").write_text("+cpu +memory")
        folder = folder / part
        folder.mkdir(exist_ok=True)

def pod(uid, qos, container, **more):
    labels = {"koordinator.sh/qosClass": qos}
    lent = {"kubernetes.io/batch-cpu": "500"}
    asked = {"requests": lent, "limits": lent} if qos == "BE" else {"requests": {"cpu": "1"}}
    status = {"containerStatuses": [{"name": "main", "containerID": "containerd://" + container}], **more}
    spec = {"hostNetwork": not more, "containers": [{"name": "main", "resources": asked}]}
    return {"metadata": {"uid": uid, "name": qos.lower(), "namespace": "d", "labels": labels}, "spec": spec, "status": status}

pods = (pod(web, "LS", "a" * 64), pod(crunch, "BE", "b" * 64), pod(own, "LSR", "c" * 64, podIP="10.8.0.2"))
limited = {"networkQOS": {"enable": True, "egressLimit": LIMIT}}
slo = {
    "resourceQOSStrategy": {
        "lsrClass": {"networkQOS": {"enable": True, "egressRequest": 10}},
        "lsClass": {"networkQOS": {"enable": True, "egressRequest": 50}},
        "beClass": limited,
    },
    "systemStrategy": {"totalNetworkBandwidth": TOTAL},
}
node = {"status": {"capacity": {"cpu": "1", "memory": "1Gi"}, "allocatable": {"cpu": "1", "memory": "1Gi"}}}
groups = find_groups(top)

def keeper_of():
    layout = KubeletLayout(groups)
    layout.assign(pods)
    look, writer = CloseLook(layout, UseFiles(groups.use_paths())), KnobWriter(groups.knobs())
    hardware = find_hardware([0], uplink=find_uplink(groups.sorting))
    return hardware, Colocation(hardware, layout, look, writer, Path("/kept"), lambda: time.time_ns() // 1000000, lambda wishes: None)

def keep(keeper, rules):
    keeper.assign(Assignment("n", 1, pods, slo=rules, node_object=node))
    for _ in range(2):
        keeper.round()
        keeper._network.wait()

def enter_own_network(told, waits):
    # As a CNI plugin does: a pair of devices, one end of which is in a network of the pod's own.
    if libc.unshare(0x40000000):
        print("no network of its own")
    for words in ("addr add 10.8.0.2/24 dev pod0", "link set pod0 up", "route add default via 10.8.0.1"):
        if words.startswith("addr"):
            os.write(told, b".")
            os.read(waits, 1)
        print(said("ip", *words.split()), end="")

def own_network(child, ready, go):
    os.read(ready, 1)
    for words in (f"link add host0 type veth peer name pod0 netns {child}", "addr add 10.8.0.1/24 dev host0", "link set host0 up"):
        print(said("ip", *words.split()), end="")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    os.write(go, b".")

def send(group, address):
    if group:
        (top / group / "cgroup.procs").write_text("0")
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind((address, 0))
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        sender.sendto(bytes(1400), ("10.9.0.7", 9))
    os._exit(0)

def sent():
    found, current = {}, ""
    for line in said("tc", "-s", "class", "show", "dev", "up0").splitlines():
        words = line.split()
        if words[:2] == ["class", "htb"]:
            current = words[2]
        elif words[:1] == ["Sent"]:
            found[current] = int(words[1])
    return found

report = {}
hardware, keeper = keeper_of()
report["uplink"] = [hardware.uplink.device, hardware.uplink.missing]
before = said("tc", "qdisc", "show", "dev", "up0")
keep(keeper, slo)
report["missing"], report["count"] = keeper._network.missing, keeper.network_classes
report["shown"] = said("tc", "class", "show", "dev", "up0") + said("nft", "list", "ruleset")
for name, group, address in (("be", places[crunch], "10.9.0.1"), ("ls", places[web], "10.9.0.1"), ("lsr", "", "10.8.0.2"),
                             ("others", "", "10.9.0.1")):
    (ready, told), (waits, go) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        if address == "10.8.0.2":
            enter_own_network(told, waits)
        send(group, address)
    if address == "10.8.0.2":
        own_network(child, ready, go)
    os.waitpid(child, 0)
    report[name] = sent()
# Nothing differs, so nothing is written; what somebody else has changed is put right.
said("tc", "class", "change", "dev", "up0", "parent", "71de:1", "classid", "71de:5", "htb", "rate", "1mbit", "ceil", "9mbit")
for _ in range(12):
    keeper.round()
    keeper._network.wait()
report["again"], report["kept"] = said("tc", "class", "show", "dev", "up0"), sent()
# Killed: its guard has what takes all back, and so has its successor, where the rules are off by then.
steps = guard.read(Path("/kept/rules.back.json"))
guard.give_back(steps)
report["guarded"] = [said("tc", "qdisc", "show", "dev", "up0") == before, said("nft", "list", "ruleset")]
keeper._network.forget()
keep(keeper, slo)
report["anew"] = keeper.network_classes, len(sent())
successor = keeper_of()[1]
keep(successor, {})
report["succeeded"] = [said("tc", "qdisc", "show", "dev", "up0") == before, said("nft", "list", "ruleset")]
keep(successor, slo)
successor.give_back()
report["ended"] = [said("tc", "qdisc", "show", "dev", "up0") == before, said("nft", "list", "ruleset")]
# With version 1 a class id tells whose a packet is.
os.makedirs("/net_cls", exist_ok=True)
if libc.mount(b"cgroup", b"/net_cls", b"cgroup", 0, b"net_cls"):
    print("no net_cls")
os.mkdir("/net_cls/batch")
KnobFilesV1({"net_cls": Path("/net_cls")}).write("batch", NET_CLASS, str(class_id(5)))
by_id = NetworkClasses(lambda group: None, Uplink("up0", sorting=Sorting.CLASS_ID))
by_id.write(network_plan(node_slo(slo), machine_of(node, uplink=Uplink("up0")), [node_pod(pods[1])]))
child = os.fork()
if not child:
    Path("/net_cls/batch/cgroup.procs").write_text("0")
    send("", "10.9.0.1")
os.waitpid(child, 0)
report["by_id"] = [by_id.missing, sent()]
by_id.write(None)
# Somebody else's is left alone.
said("tc", "qdisc", "replace", "dev", "up0", "root", "handle", "1:", "htb")
other = keeper_of()[1]
keep(other, slo)
report["other"] = [other._network.missing, other.network_classes, said("tc", "qdisc", "show", "dev", "up0")]
print("REPORT " + json.dumps(report))
"""
BURSTABLE, BEST_EFFORT, OWN = (f"{digit * 8}-0fda-4b1a-9f6e-{digit * 12}" for digit in "123")


def test_best_effort_is_held_on_the_way_out_and_all_is_given_back(tmp_path: Path) -> None:
    if os.environ.get("TIDEGATE_LAB") not in ("all", "build"):
        pytest.skip("a virtual machine whose kernel has htb and nftables takes a minute; TIDEGATE_LAB=all starts it")
    program = PROGRAM
    for name, value in (
        ("MODULES", MODULES),
        ("UIDS", (BURSTABLE, BEST_EFFORT, OWN)),
        ("SECONDS", SECONDS),
        ("LIMIT", str(LIMIT_BITS)),
        ("TOTAL", str(TOTAL_BITS)),
    ):
        program = program.replace(name, repr(value))
    try:
        said = run(program, code(tmp_path), tmp_path, programs=("tc", "nft", "ip"), modules=MODULES)
    except NoLab as error:
        pytest.skip(str(error))

    (line,) = [line.partition("REPORT ")[2] for line in said.splitlines() if "REPORT " in line] or [said[-3000:]]
    report = json.loads(line)
    assert report["uplink"] == ["up0", ""] and report["missing"] == "" and report["count"] == 3, report["shown"]
    be, ls, lsr, others = report["be"], report["ls"], report["lsr"], report["others"]
    limit_bytes = LIMIT_BITS // 8 * SECONDS
    assert limit_bytes * 0.5 < be["71de:5"] < limit_bytes * 1.5, "counted in its class, and held to its limit"
    assert be["71de:4"] == be["71de:3"] == 0
    assert ls["71de:4"] > 2 * be["71de:5"] and ls["71de:3"] == 0, "who serves may take the rest"
    assert lsr["71de:3"] > be["71de:5"], "a packet from a pod's own network is known by its address"
    assert others["71de:2"] - lsr["71de:2"] > 2 * be["71de:5"], "who has no class is not held"
    assert "ceil 2Mbit" in report["again"] and report["kept"]["71de:5"] >= be["71de:5"], "put right without a new start"
    assert report["guarded"] == report["succeeded"] == report["ended"] == [True, ""]
    assert report["anew"] == [3, 5]
    missing, by_id = report["by_id"]
    assert missing == "" and limit_bytes * 0.5 < by_id["71de:5"] < limit_bytes * 1.5
    missing, count, there = report["other"]
    assert "queueing discipline of his own: htb" in missing and count == 0 and "qdisc htb 1: root" in there
