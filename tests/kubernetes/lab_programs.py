"""The programs of a real Kubernetes, built from module source: API server, controller manager, scheduler, etcd, kwok.

Nothing but Go and its module proxy is needed. The programs are kept in a cache outside of the checkout, by a digest of what
they are built from; building all of them takes about a quarter of an hour on two cores.
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


PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", _STAMP),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", _STAMP),
    Program("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", _STAMP),
)


class NoLab(Exception):
    """The programs are not there and cannot, or shall not, be built; the text says what would help."""


def folder() -> Path:
    """Where the programs of this version are, or will be."""
    digest = hashlib.sha256()
    for file in sorted(MODULES.glob("*/go.*")):
        digest.update(file.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tidegate" / "kubernetes-lab" / digest.hexdigest()[:16]


def programs(*names: str) -> dict[str, Path]:
    """The paths of the programs ``names``. Raises NoLab."""
    place = folder()
    missing = [program for program in PROGRAMS if program.name in names and not (place / program.name).exists()]
    if missing:
        build(missing)
    return {name: place / name for name in names}


def build(wanted: list[Program]) -> None:
    """Build what is missing, if that was asked for by TIDEGATE_LAB=build. Raises NoLab."""
    if os.environ.get("TIDEGATE_LAB") != "build":
        raise NoLab("a real Kubernetes is not built on this machine; TIDEGATE_LAB=build builds it once (15 minutes)")
    go = shutil.which("go")
    if go is None:
        raise NoLab("Go is not installed, so no Kubernetes can be built")
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    for program in wanted:
        target = place / program.name
        command = [go, "build", "-trimpath", "-ldflags", program.flags, "-o", f"{target}.new", program.package]
        done = subprocess.run(
            command,
            cwd=MODULES / program.module,
            env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoLab(f"{program.name} cannot be built: {done.stderr.strip()[-500:]}")
        Path(f"{target}.new").rename(target)


if __name__ == "__main__":
    os.environ["TIDEGATE_LAB"] = "build"
    programs(*(program.name for program in PROGRAMS))
    print(folder())
