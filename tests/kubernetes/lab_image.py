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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PYTHON = "docker.io/tidegate-lab/python:1"
"""Runs ``python``, as any user."""
PAUSE = "docker.io/tidegate-lab/pause:1"
"""What holds a pod's namespaces: it waits to be ended."""

_PREFIX = "usr/local"
_LEFT_OUT = {"site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "config", "lib2to3"}
_WAIT = "import signal; signal.sigwait({signal.SIGINT, signal.SIGTERM})"
_LIBRARY = re.compile(r"(/\S+) \(0x")


def write_archive(target: Path) -> None:
    """Write both images, which share their one layer, to the file ``target``."""
    layer = _layer()
    digest = hashlib.sha256(layer).hexdigest()
    commands = {PYTHON: ("python",), PAUSE: ("python", "-S", "-E", "-c", _WAIT)}
    manifest, configs = [], {}
    for tag, command in commands.items():
        config = json.dumps(_config(command, digest)).encode()
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        configs[name] = config
        manifest.append({"Config": name, "RepoTags": [tag], "Layers": [f"{digest}/layer.tar"]})
    with tarfile.open(target, "w") as archive:
        _add_bytes(archive, f"{digest}/layer.tar", layer)
        for name, config in configs.items():
            _add_bytes(archive, name, config)
        _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())


def _config(command: Sequence[str], layer: str) -> Mapping[str, Any]:
    machine = platform.machine()
    return {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": list(command), "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }


def _layer() -> bytes:
    """Interpreter, standard library and the shared libraries of both; folders that anybody may pass."""
    binary = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        _add_folder(archive, "tmp", 0o1777)
        archive.add(binary, f"{_PREFIX}/bin/python3", filter=_root_owned)
        _add_link(archive, f"{_PREFIX}/bin/python", "python3")
        archive.add(library, f"{_PREFIX}/lib/{library.name}", filter=_needed)
        for shared in sorted(_shared([binary, *library.glob("lib-dynload/*.so")])):
            archive.add(os.path.realpath(shared), shared.lstrip("/"), filter=_root_owned)
    return data.getvalue()


def _shared(files: Sequence[Path]) -> Iterator[str]:
    listed = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    return iter({found[1] for found in _LIBRARY.finditer(listed)})


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = entry.name.split("/")[len(_PREFIX.split("/")) + 2 :]
    return None if parts and parts[0].split("-3")[0] in _LEFT_OUT else _root_owned(entry)


def _root_owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
    return entry


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
