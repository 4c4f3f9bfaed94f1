"""Container images without a registry: the Python of this machine, in the form that `docker save` writes."""

import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYTHON = "tidegate-lab/python:1"
"""Runs ``python``, as any user."""
PAUSE = "tidegate-lab/pause:1"
"""What holds a pod's namespaces: it waits to be ended."""

_PREFIX = "usr/local"
_LEFT_OUT = {"site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "config", "lib2to3"}
_WAIT = "import signal; signal.sigwait({signal.SIGINT, signal.SIGTERM})"
_LIBRARY = re.compile(r"(/\S+) \(0x")


@dataclass(frozen=True, slots=True)
class Layer:
    """A tar of files, and the digest of its bytes."""

    data: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Image:
    """What an image runs, as which user, and its layers, lowest first."""

    tag: str
    entry: tuple[str, ...]
    layers: tuple[Layer, ...]
    user: int = 0
    environment: Mapping[str, str] | None = None


def layer(write: Callable[[tarfile.TarFile], None]) -> Layer:
    """What ``write`` puts into a tar."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        write(archive)
    return Layer(data.getvalue(), hashlib.sha256(data.getvalue()).hexdigest())


def write_images(target: Path, images: Sequence[Image]) -> None:
    """Write ``images`` to one archive, each layer once."""
    manifest = []
    with tarfile.open(target, "w") as archive:
        for digest, data in {one.digest: one.data for image in images for one in image.layers}.items():
            _add_bytes(archive, f"{digest}/layer.tar", data)
        for image in images:
            config = json.dumps(_config(image)).encode()
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add_bytes(archive, name, config)
            layers = [f"{one.digest}/layer.tar" for one in image.layers]
            manifest.append({"Config": name, "RepoTags": [image.tag], "Layers": layers})
        _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())


def lab_images() -> list[Image]:
    """Those of the lab itself, which share their one layer."""
    layers = (python_layer(),)
    return [
        Image(PYTHON, ("python",), layers),
        Image(PAUSE, ("python", "-S", "-E", "-c", _WAIT), layers),
    ]


def python_layer() -> Layer:
    """Interpreter, standard library and the shared libraries of both; folders that anybody may pass."""
    binary = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))

    def write(archive: tarfile.TarFile) -> None:
        _add_folder(archive, "tmp", 0o1777)
        archive.add(binary, f"{_PREFIX}/bin/python3", filter=root_owned)
        _add_link(archive, f"{_PREFIX}/bin/python", "python3")
        archive.add(library, f"{_PREFIX}/lib/{library.name}", filter=_needed)
        add_libraries(archive, [binary, *library.glob("lib-dynload/*.so")])

    return layer(write)


def add_libraries(archive: tarfile.TarFile, files: Sequence[Path]) -> None:
    """Add the machine's shared libraries that programs and extension modules need, each at its own path."""
    listed = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    for shared in sorted({found[1] for found in _LIBRARY.finditer(listed)}):
        if shared.startswith(("/lib", "/usr/lib", sys.base_prefix)):
            archive.add(os.path.realpath(shared), shared.lstrip("/"), filter=root_owned)


def root_owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """The entry, root's, and everybody's to read."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
    return entry


def _config(image: Image) -> Mapping[str, Any]:
    machine = platform.machine()
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", **(image.environment or {})}
    return {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine),
        "os": "linux",
        "config": {
            "Entrypoint": list(image.entry),
            "Env": [f"{name}={value}" for name, value in variables.items()],
            "User": f"{image.user}:{image.user}",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one.digest}" for one in image.layers]},
    }


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = entry.name.split("/")[len(_PREFIX.split("/")) + 2 :]
    return None if parts and parts[0].split("-3")[0] in _LEFT_OUT else root_owned(entry)


def _add_folder(archive: tarfile.TarFile, name: str, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    archive.addfile(entry)


def _add_link(archive: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    archive.addfile(entry)


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    archive.addfile(entry, io.BytesIO(data))
