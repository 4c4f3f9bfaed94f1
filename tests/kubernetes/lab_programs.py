"""The programs of a real Kubernetes, built from module source: control plane, node, network, Helm, Docker Compose.

Nothing but Go and its module proxy is needed (a C compiler and libseccomp's headers for runc). The programs of a module are
kept in a cache outside of the checkout, by a digest of what they are built from; building all of them takes about half an hour
on two cores.
"""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "modules"
VERSION = "v1.36.3"
_STAMP = (
    f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION} "
    "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
)


@dataclass(frozen=True, slots=True)
class Program:
    """One program: ``package`` of the tool module ``module`` (a folder beside this file)."""

    name: str
    module: str
    package: str
    flags: str = "-s -w"
    tags: str = ""
    cgo: bool = False

    def path(self) -> Path:
        """Where the program is, or will be."""
        digest = hashlib.sha256()
        for file in sorted((MODULES / self.module).glob("go.*")):
            digest.update(file.read_bytes())
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "tidegate" / "kubernetes-lab" / f"{self.module}-{digest.hexdigest()[:16]}" / self.name


_CNI = "github.com/containernetworking/plugins/plugins"
_CONTAINERD = "github.com/containerd/containerd/v2/cmd"
_COMPOSE = "github.com/docker/compose/v5"

PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", _STAMP),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", _STAMP),
    Program("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", _STAMP),
    Program("helm", "helm", "helm.sh/helm/v4/cmd/helm"),
    Program("containerd", "containerd", f"{_CONTAINERD}/containerd"),
    Program("containerd-shim-runc-v2", "containerd", f"{_CONTAINERD}/containerd-shim-runc-v2"),
    Program("ctr", "containerd", f"{_CONTAINERD}/ctr"),
    Program("runc", "runc", "github.com/opencontainers/runc", tags="seccomp", cgo=True),
    Program("kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", _STAMP),
    Program("kube-proxy", "kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", _STAMP),
    Program("bridge", "cni", f"{_CNI}/main/bridge"),
    Program("loopback", "cni", f"{_CNI}/main/loopback"),
    Program("ptp", "cni", f"{_CNI}/main/ptp"),
    Program("host-local", "cni", f"{_CNI}/ipam/host-local"),
    Program("portmap", "cni", f"{_CNI}/meta/portmap"),
    # Tilt asks it for a version, and takes "dev" for none.
    Program("docker-compose", "compose", f"{_COMPOSE}/cmd", f"-s -w -X {_COMPOSE}/internal.Version=v5.4.0"),
    Program("coredns", "coredns", "github.com/coredns/coredns"),
)


class NoLab(Exception):
    """The programs are not there and cannot, or shall not, be built; the text says what would help."""


def programs(*names: str) -> dict[str, Path]:
    """The paths of the programs ``names``. Raises NoLab."""
    wanted = [program for program in PROGRAMS if program.name in names]
    missing = [program for program in wanted if not program.path().exists()]
    if missing:
        build(missing)
    return {program.name: program.path() for program in wanted}


def build(wanted: list[Program]) -> None:
    """Build what is missing, if that was asked for by TIDEGATE_LAB=build. Raises NoLab."""
    if os.environ.get("TIDEGATE_LAB") != "build":
        raise NoLab(
            "a real Kubernetes is not built on this machine; TIDEGATE_LAB=build builds it once (up to half an hour)"
        )
    go = shutil.which("go")
    if go is None:
        raise NoLab("Go is not installed, so no Kubernetes can be built")
    for program in wanted:
        target = program.path()
        target.parent.mkdir(parents=True, exist_ok=True)
        options = ["-trimpath", "-tags", program.tags, "-ldflags", program.flags]
        command = [go, "build", *options, "-o", f"{target}.new", program.package]
        done = subprocess.run(
            command,
            cwd=MODULES / program.module,
            env={**os.environ, "CGO_ENABLED": "1" if program.cgo else "0", "GOFLAGS": "-buildvcs=false -mod=readonly"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoLab(f"{program.name} cannot be built: {done.stderr.strip()[-500:]}")
        Path(f"{target}.new").rename(target)


if __name__ == "__main__":
    os.environ["TIDEGATE_LAB"] = "build"
    for path in programs(*(program.name for program in PROGRAMS)).values():
        print(path)
