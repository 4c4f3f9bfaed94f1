"""A real node: kubelet, containerd, runc, a network for pods, Service addresses and DNS; and the control plane beside it.

All of it lives in namespaces of its own (mount, network, process ids, host name), made by one holder process: when that ends,
or whoever started it, the kernel takes every process, mount, interface and firewall rule with it. What is left are control
groups, below one of its own in every hierarchy; they are removed at the end.

    this machine                            │ the node's namespaces
    tests, kubectl ── veth 10.213.<n>.1 ────│─ 10.213.<n>.2: API server, kubelet ── ptp ── pods 10.214.<n>.0/24
                                            │  etcd, controllers, kube-scheduler, kube-proxy (10.96.0.0/16), CoreDNS
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from control_plane import ControlPlane, etcd_command, write_kubeconfig
from lab_certificates import certificates
from lab_image import lab_images, write_images
from lab_programs import programs
from node_configuration import API_PORT, DNS_SERVICE, NODE, api_server, dns_endpoints, write_configuration
from node_place import Place, check_machine, control_groups, hierarchies, namespaces, until

from bus.server import free_ports

PLUGINS = ("containerd-shim-runc-v2", "runc", "ptp", "loopback", "host-local")
"""What containerd starts."""
PROGRAMS = ("containerd", "ctr", "kubelet", "kube-proxy", "coredns")
CONTROL = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(slots=True)
class RealNode:
    """A running cluster of one node. ``plane`` is its control plane; ``pid`` holds its namespaces."""

    place: Place
    programs: dict[str, Path]
    plane: ControlPlane
    pid: int

    @property
    def cgroup_root(self) -> str:
        return self.place.cgroup_root

    @property
    def inside(self) -> list[str]:
        """Begins a command in the node's network."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net"]

    @property
    def within(self) -> list[str]:
        """Begins a command in all of the node's namespaces."""
        return ["nsenter", "--target", str(self.pid), "--mount", "--net", "--uts", "--pid"]

    def start(self, name: str, *flags: str) -> None:
        """Start one of the programs, in the node's namespaces."""
        path = f"PATH={self.place.folder / 'bin'}:{os.environ['PATH']}"
        self.plane.start(name, [*self.within, "env", path, str(self.programs[name]), *flags])

    def load(self, archive: Path) -> None:
        """Take in the images of an archive as `docker save` writes it."""
        command = [*self.within, str(self.programs["ctr"]), "-a", "/run/containerd/containerd.sock", "-n", "k8s.io"]
        command += ["images", "import", str(archive)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{archive} cannot be taken in: {done.stderr}")

    def left_behind(self) -> list[str]:
        """What is still there of a node that has ended; empty, if all is as it was before."""
        place, mine = self.place, str(self.place.folder)
        groups = [str(one) for hierarchy in hierarchies() if (one := hierarchy / place.cgroup_root[1:]).exists()]
        links = [str(one) for one in (Path("/sys/class/net") / place.link,) if one.exists()]
        mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if mine in line]
        commands = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
        return [*groups, *links, *mounts, *(command for command in commands if mine in command)]


@contextmanager
def real_node(folder: Path) -> Iterator[RealNode]:
    """A cluster with one real node, its state below ``folder``. Raises NoLab where it cannot be had."""
    check_machine()
    found = programs(*PLUGINS, *PROGRAMS, *CONTROL)
    folder.mkdir(parents=True, exist_ok=True)
    with control_groups() as number:
        place = Place(folder, number)
        plane = ControlPlane(folder, f"https://{place.address}:{API_PORT}", "real-node-lab")
        try:
            with namespaces(place) as pid:
                node = RealNode(place, found, plane, pid)
                _start_control(node)
                _start_node(node)
                yield node
        finally:
            for process in plane.processes.values():  # their namespaces have ended, and they with them
                process.wait(20)


def _start_control(node: RealNode) -> None:
    """etcd, API server, controllers and kube-scheduler."""
    plane, place = node.plane, node.place
    certificates(place.folder, [place.address, "10.96.0.1", "kubernetes.default.svc"])
    (place.folder / "tokens.csv").write_text(f'{plane.token},admin,admin,"system:masters"\n')
    write_kubeconfig(plane)
    client, peer = free_ports(2)
    etcd = f"http://127.0.0.1:{client}"
    node.start("etcd", *etcd_command(node.programs["etcd"], place.folder, etcd, f"http://127.0.0.1:{peer}")[1:])
    node.start("kube-apiserver", *api_server(place, etcd))
    plane.wait_ready()
    common = (f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1")
    node.start(
        "kube-controller-manager",
        *common,
        f"--service-account-private-key-file={place.folder / 'server.key'}",
        f"--root-ca-file={place.folder / 'ca.crt'}",
        "--node-monitor-grace-period=60s",
    )
    node.start("kube-scheduler", *common)


def _start_node(node: RealNode) -> None:
    """containerd with our images, kubelet, kube-proxy and CoreDNS; returns when the node is ready for pods."""
    folder, plane = node.place.folder, node.plane
    write_configuration(node.place, {name: node.programs[name] for name in PLUGINS})
    archive = folder / "images.tar"
    write_images(archive, lab_images())
    node.start("containerd", "--config", str(folder / "containerd.toml"))
    until(Path(f"/proc/{node.pid}/root/run/containerd/containerd.sock").exists, "containerd", folder / "containerd.log")
    node.load(archive)
    archive.unlink()
    node.start(
        "kubelet",
        f"--config={folder / 'kubelet.yaml'}",
        f"--kubeconfig={plane.kubeconfig}",
        f"--hostname-override={NODE}",
        f"--node-ip={node.place.address}",
    )
    node.start("kube-proxy", f"--config={folder / 'kube-proxy.yaml'}", f"--hostname-override={NODE}")
    until(lambda: _is_ready(plane), "the node", folder / "kubelet.log")
    plane.request("POST", "/api/v1/namespaces/kube-system/services", DNS_SERVICE)
    plane.request("POST", "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", dns_endpoints(node.place))
    node.start("coredns", "-conf", str(folder / "Corefile"))


def _is_ready(plane: ControlPlane) -> bool:
    nodes = plane.request("GET", "/api/v1/nodes")["items"]
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for node in nodes
        for one in node["status"].get("conditions", ())
    )
