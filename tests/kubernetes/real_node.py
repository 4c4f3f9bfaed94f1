"""A real node: kubelet, containerd, runc, a network for pods, Service addresses and DNS; and the control plane beside it.

All of it lives in namespaces of its own (mount, network, process ids, host name), made by one holder process: when that ends,
or whoever started it, the kernel takes every process, mount, interface and firewall rule with it. What is left are control
groups, below one of its own in every hierarchy; they are removed at the end.

    this machine                            │ the node's namespaces
    tests, kubectl ── veth 10.213.<n>.1 ────│─ 10.213.<n>.2: API server, kubelet ── ptp ── pods 10.214.<n>.0/24
                                            │  etcd, controllers, kube-scheduler, kube-proxy (10.96.0.0/16), CoreDNS
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from control_plane import ControlPlane, certificates, etcd_command, write_kubeconfig
from lab_image import PAUSE, lab_images, write_images
from lab_programs import NoLab, programs

from bus.server import free_ports

CGROUPS = Path("/sys/fs/cgroup")
NODE = "real-node"
API_PORT = 6443
DNS_ADDRESS = "10.96.0.10"
PROGRAMS = (
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "runc",
    "kubelet",
    "kube-proxy",
    "ptp",
    "loopback",
    "host-local",
)
CONTROL = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns")
TOOLS = ("unshare", "nsenter", "ip", "mount", "bash", "ldd", "iptables-restore", "conntrack")
START_SECONDS = 90.0
SHARES = "20480"
"""Of the pods together: what else runs on this machine has 1,024 for each process."""

# Reads its standard input to the end: it ends with who started it. bash takes up processes whose parents have ended.
_HOLDER = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p "$1/var" "$1/var-work"
mount -t overlay overlay -o "lowerdir=/var,upperdir=$1/var,workdir=$1/var-work" /var
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$1/holds"
while read -r _; do :; done
"""


@dataclass(slots=True)
class RealNode:
    """A running cluster of one node. ``plane`` is its control plane; ``inside`` begins a command in the node's network."""

    folder: Path
    number: int
    programs: dict[str, Path]
    plane: ControlPlane
    pid: int
    processes: dict[str, "subprocess.Popen[bytes]"]

    @property
    def address(self) -> str:
        return f"10.213.{self.number}.2"

    @property
    def cgroup_root(self) -> str:
        """The kubelet's ``--cgroup-root``."""
        return f"/tidegate-lab-{self.number}"

    @property
    def inside(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net"]

    @property
    def within(self) -> list[str]:
        """Begins a command in all of the node's namespaces."""
        return ["nsenter", "--target", str(self.pid), "--mount", "--net", "--uts", "--pid"]

    def start(self, name: str, *flags: str) -> None:
        """Start one of the node's programs."""
        command = [*self.within, str(self.programs[name]), *flags]
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def ctr(self, *words: str) -> str:
        """What `ctr` says, on the images and containers of the kubelet."""
        command = [
            *self.within,
            str(self.programs["ctr"]),
            "-a",
            "/run/containerd/containerd.sock",
            "-n",
            "k8s.io",
            *words,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            raise RuntimeError(f"ctr {' '.join(words)}: {done.stderr}")
        return done.stdout

    def load(self, archive: Path) -> None:
        """Take in the images of an archive as `docker save` writes it."""
        self.ctr("images", "import", str(archive))


@contextmanager
def real_node(folder: Path) -> Iterator[RealNode]:
    """A cluster with one real node, its state below ``folder``. Raises NoLab where it cannot be had."""
    _check_machine()
    found = programs(*PROGRAMS, *CONTROL)
    folder.mkdir(parents=True, exist_ok=True)
    with _cgroups() as number, _ended() as processes, _namespaces(folder, number) as pid:
        plane = ControlPlane(folder, f"https://10.213.{number}.2:{API_PORT}", "real-node-lab")
        node = RealNode(folder, number, found, plane, pid, processes)
        try:
            _start_control(node)
            _start_node(node)
            yield node
        finally:
            for name in reversed(list(plane.processes)):  # at once: what waits for a kubelet's watches waits long
                plane.kill(name)


@contextmanager
def _ended() -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """Programs that have ended when their namespaces have."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        yield processes
    finally:
        for process in processes.values():
            process.wait(20)


def _check_machine() -> None:
    if os.geteuid() != 0:
        raise NoLab("a real node needs root")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoLab(f"a real node needs {', '.join(missing)}")
    if not (CGROUPS / "memory").is_dir() and not (CGROUPS / "cgroup.controllers").exists():
        raise NoLab(f"no control groups are mounted at {CGROUPS}")


def _hierarchies() -> list[Path]:
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return sorted({one.resolve() for one in CGROUPS.iterdir() if one.is_dir()})


@contextmanager
def _cgroups() -> Iterator[int]:
    """A control group of the node's own in every hierarchy, for the kubelet to work in; its number is nobody else's."""
    first, *others = _hierarchies()
    number = next(number for number in range(10, 250) if _made(first / f"tidegate-lab-{number}"))
    groups = [one / f"tidegate-lab-{number}" for one in (first, *others)]
    try:
        for group in groups:
            group.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (group / name).exists():
                    (group / name).write_text((group.parent / name).read_text())
            if (group / "cpu.shares").exists():
                (group / "cpu.shares").write_text(SHARES)
        yield number
    finally:
        for group in groups:
            _remove(group)


def _made(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _remove(group: Path) -> None:
    """Remove a control group and all below, whose processes have been killed just now."""
    until = time.monotonic() + 20
    while group.exists():
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                continue
        if time.monotonic() > until:
            raise RuntimeError(f"{group} cannot be removed: something still runs in it")
        time.sleep(0.05)


@contextmanager
def _namespaces(folder: Path, number: int) -> Iterator[int]:
    """The process that holds the node's namespaces: its id."""
    link = f"tidelab{number}"
    command = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += ["bash", "-c", _HOLDER, "holder", str(folder)]
    with (folder / "holder.log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
    try:
        _until(
            lambda: (folder / "holds").exists() or process.poll() is not None, "the namespaces", folder / "holder.log"
        )
        if process.poll() is not None:
            raise NoLab(f"no namespaces can be made: {(folder / 'holder.log').read_text().strip()}")
        (holder,) = psutil.Process(process.pid).children()
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        _run("ip", "addr", "add", f"10.213.{number}.1/30", "dev", link)
        _run("ip", "link", "set", link, "up")
        inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        _run(*inside, "ip", "addr", "add", f"10.213.{number}.2/30", "dev", "eth0")
        _run(*inside, "ip", "link", "set", "eth0", "up")
        yield holder.pid
    finally:
        process.kill()
        process.communicate()
        _until(lambda: not Path(f"/sys/class/net/{link}").exists(), "the end of the namespaces", folder / "holder.log")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def _until(holds: Callable[[], Any], what: str, log: Path) -> Any:
    until = time.monotonic() + START_SECONDS
    while True:
        if found := holds():
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {START_SECONDS:g} s\n{log.read_text()[-3000:]}")
        time.sleep(0.1)


def _start_control(node: RealNode) -> None:
    """etcd, API server, controllers and kube-scheduler, in the node's network."""
    plane, folder = node.plane, node.folder
    certificates(folder, [node.address, "10.96.0.1", "kubernetes.default.svc"])
    (folder / "tokens.csv").write_text(f'{plane.token},admin,admin,"system:masters"\n')
    write_kubeconfig(plane)
    client, peer = free_ports(2)
    etcd = f"http://127.0.0.1:{client}"

    def start(name: str, flags: Sequence[str]) -> None:
        plane.start(name, [*node.inside, str(node.programs[name]), *flags])

    start("etcd", etcd_command(node.programs["etcd"], folder, etcd, f"http://127.0.0.1:{peer}")[1:])
    start("kube-apiserver", _api_server(node, etcd))
    plane.wait_ready()
    kubeconfig = f"--kubeconfig={plane.kubeconfig}"
    start(
        "kube-controller-manager",
        [
            kubeconfig,
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--service-account-private-key-file={folder / 'server.key'}",
            f"--root-ca-file={folder / 'ca.crt'}",
            "--node-monitor-grace-period=60s",
        ],
    )
    start("kube-scheduler", [kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1"])


def _api_server(node: RealNode, etcd: str) -> list[str]:
    folder = node.folder
    return [
        f"--etcd-servers={etcd}",
        f"--secure-port={API_PORT}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={node.address}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-key-file={folder / 'server.key'}",
        f"--service-account-signing-key-file={folder / 'server.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",
        f"--cert-dir={folder / 'certificates'}",
    ]


def _start_node(node: RealNode) -> None:
    """containerd with our images, kubelet, kube-proxy and CoreDNS; returns when the node is ready for pods."""
    folder = node.folder
    _write_configuration(node)
    archive = folder / "images.tar"
    write_images(archive, lab_images())
    node.start("containerd", "--config", str(folder / "containerd.toml"))
    socket = Path(f"/proc/{node.pid}/root/run/containerd/containerd.sock")
    _until(socket.exists, "containerd", folder / "containerd.log")
    node.load(archive)
    archive.unlink()
    node.start(
        "kubelet",
        f"--config={folder / 'kubelet.yaml'}",
        f"--kubeconfig={node.plane.kubeconfig}",
        f"--hostname-override={NODE}",
        f"--node-ip={node.address}",
    )
    node.start("kube-proxy", f"--config={folder / 'kube-proxy.yaml'}", f"--hostname-override={NODE}")
    _until(lambda: _is_ready(node.plane), "the node", folder / "kubelet.log")
    node.plane.request("POST", "/api/v1/namespaces/kube-system/services", DNS_SERVICE)
    node.plane.request("POST", "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", _dns_endpoints(node))
    node.plane.start("coredns", [*node.inside, str(node.programs["coredns"]), "-conf", str(folder / "Corefile")])


def _is_ready(plane: ControlPlane) -> bool:
    nodes = plane.request("GET", "/api/v1/nodes")["items"]
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for node in nodes
        for one in node["status"].get("conditions", ())
    )


DNS_SERVICE = {
    "metadata": {"name": "kube-dns", "namespace": "kube-system"},
    "spec": {
        "clusterIP": DNS_ADDRESS,
        "ports": [{"name": name.lower(), "port": 53, "protocol": name} for name in ("UDP", "TCP")],
    },
}


def _dns_endpoints(node: RealNode) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "kube-dns-lab",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns", "endpointslice.kubernetes.io/managed-by": "lab"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [node.address], "conditions": {"ready": True}}],
        "ports": [{"name": name.lower(), "port": 53, "protocol": name} for name in ("UDP", "TCP")],
    }


def _write_configuration(node: RealNode) -> None:
    folder = node.folder
    (folder / "bin").mkdir()
    for name in PROGRAMS:
        (folder / "bin" / name).symlink_to(node.programs[name])
    (folder / "cni").mkdir()
    (folder / "cni/10-lab.conflist").write_text(_CNI.replace("SUBNET", f"10.214.{node.number}.0/24"))
    (folder / "containerd.toml").write_text(
        _CONTAINERD.replace("FOLDER", str(folder))
        .replace("PAUSE", f"docker.io/{PAUSE}")
        .replace("RUNC", str(node.programs["runc"]))
    )
    (folder / "resolv.conf").write_text("")
    (folder / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet(node)))
    proxy = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(node.plane.kubeconfig)},
        "clusterCIDR": f"10.214.{node.number}.0/24",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }
    (folder / "kube-proxy.yaml").write_text(yaml.safe_dump(proxy))
    (folder / "Corefile").write_text(
        f".:53 {{\n  bind {node.address}\n  kubernetes cluster.local {{\n    kubeconfig {node.plane.kubeconfig} lab\n"
        "    pods disabled\n  }\n  errors\n}\n"
    )


def _kubelet(node: RealNode) -> dict[str, Any]:
    """Nothing is collected or evicted for want of room: the disk is not the node's alone."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.cgroup_root,
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(node.folder / "resolv.conf"),
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "24h",
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "nodeStatusUpdateFrequency": "5s",
        "volumeStatsAggPeriod": "0s",
    }


_CNI = """
{"cniVersion": "1.0.0", "name": "lab", "plugins": [
  {"type": "ptp", "ipMasq": false,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "SUBNET"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
"""
# A machine without CAP_SYS_RESOURCE cannot lower what the kernel thinks of a process when memory is short.
_CONTAINERD = """
version = 3
root = 'FOLDER/containerd'
state = '/run/containerd'
disabled_plugins = ['io.containerd.snapshotter.v1.btrfs', 'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.devmapper', 'io.containerd.snapshotter.v1.erofs', 'io.containerd.tracing.processor.v1.otlp']
[grpc]
  address = '/run/containerd/containerd.sock'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'PAUSE'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = 'RUNC'
      SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['FOLDER/bin']
    conf_dir = 'FOLDER/cni'
[plugins.'io.containerd.nri.v1.nri']
  disable = true
"""
