"""A virtual machine that runs one Python program and ends, for what this machine's kernel was not started with.

It has the Python of this machine and nothing on disk: kernel, one file system in memory, a serial console. Emulated as a whole
(no KVM), so it is for what is there and what it says, not for how long that takes. The kernel is that of a Debian package,
``linux-image-cloud-amd64``, unpacked beside the lab's programs (``kernel/vmlinuz``), or named by TIDEGATE_KERNEL.
"""

import io
import os
import re
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab_image import python_layer
from lab_programs import NoLab

QEMU = "qemu-system-x86_64"
MEMORY_MIB = 1024
_LIBRARY = re.compile(r"(/\S+) \(0x")
BEGIN = """#!/usr/local/bin/python3 -S
import ctypes, os, sys
sys.path[:0] = ["/code"]
libc = ctypes.CDLL(None)

def mount(kind, where):
    os.makedirs(where, exist_ok=True)
    if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None):
        raise OSError(where)

try:
    mount("proc", "/proc")
"""
END = """
except BaseException:
    import traceback
    traceback.print_exc()
finally:
    sys.stdout.flush()
    sys.stderr.flush()
    libc.reboot(0x1234567)
"""


def _kernel() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TIDEGATE_KERNEL") or cache / "tidegate" / "kubernetes-lab" / "kernel" / "vmlinuz")


def run(
    program: str,
    code: Sequence[Path],
    folder: Path,
    seconds: float = 300.0,
    programs: Sequence[str] = (),
    modules: Sequence[str] = (),
) -> str:
    """What ``program`` prints as the first process of a machine where the packages of the folders ``code`` can be imported.

    It has ``programs`` of this machine at their paths, and ``modules`` of the kernel (its package has them, they are looked for in
    the folder ``modules`` beside it) as ``/modules/<name>.ko``.

    Raises NoLab where there is no machine to be had.
    """
    if shutil.which(QEMU) is None or not _kernel().exists():
        raise NoLab(f"a virtual machine needs {QEMU} and a kernel at {_kernel()}")
    files = {**_programs(programs), **_modules(modules)}
    body = "".join(f"    {line}\n" for line in program.splitlines())
    image = folder / "initramfs"
    image.write_bytes(b"".join(_archive(BEGIN + body + END, code, files)))
    command = [QEMU, "-accel", "tcg", "-m", str(MEMORY_MIB), "-nographic", "-no-reboot", "-kernel", str(_kernel())]
    # A kernel that has just begun has no random numbers yet. What it does not know it gives on as variables.
    command += ["-initrd", str(image), "-append", "console=ttyS0 quiet panic=-1 PYTHONHASHSEED=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, errors="replace")
    return done.stdout


def _programs(names: Sequence[str]) -> dict[str, Path]:
    """Programs with the libraries that they are linked with, by path."""
    found: dict[str, Path] = {}
    for name in names:
        program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            raise NoLab(f"the virtual machine needs {name}")
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for path in (program, *_LIBRARY.findall(linked)):
            found[path.lstrip("/")] = Path(path)
    return found


def _modules(names: Sequence[str]) -> dict[str, Path]:
    found = {f"modules/{name}.ko": _kernel().parent / "modules" / f"{name}.ko" for name in names}
    if absent := [str(file) for file in found.values() if not file.exists()]:
        raise NoLab(f"the kernel of the virtual machine has no {', '.join(absent)}")
    return found


def _archive(init: str, code: Sequence[Path], files: Mapping[str, Path]) -> Iterator[bytes]:
    """The file system as the kernel unpacks it (cpio, format newc)."""
    yield _entry("init", stat.S_IFREG | 0o755, init.encode())
    folders: set[str] = set()
    with tarfile.open(fileobj=io.BytesIO(python_layer().data)) as layer:
        for member in layer:
            yield from _above(member.name, folders)
            if member.isdir():
                continue
            if member.issym():
                yield _entry(member.name, stat.S_IFLNK | 0o777, member.linkname.encode())
            elif (content := layer.extractfile(member)) is not None:
                yield _entry(member.name, stat.S_IFREG | member.mode, content.read())
    for source in code:
        for file in sorted(source.rglob("*.py")):
            name = f"code/{file.relative_to(source)}"
            yield from _above(name, folders)
            yield _entry(name, stat.S_IFREG | 0o644, file.read_bytes())
    for name, source in files.items():
        yield from _above(name, folders)
        yield _entry(name, stat.S_IFREG | 0o755, source.read_bytes())
    yield _entry("TRAILER!!!", 0, b"")


def _above(name: str, made: set[str]) -> Iterator[bytes]:
    for parent in reversed(Path(name).parents):
        if str(parent) not in (".", *made):
            made.add(str(parent))
            yield _entry(str(parent), stat.S_IFDIR | 0o755, b"")


def _entry(name: str, mode: int, data: bytes) -> bytes:
    path = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
