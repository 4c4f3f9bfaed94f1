"""System calls that Python 3.11 has no function for. Linux only; every call raises OSError as those of ``os`` do."""

import ctypes
import os
import struct

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 0x1, 0x20, 0x1000, 0x2000, 0x4000, 0x40000
MNT_DETACH = 2
_IN_MODIFY = 2

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 15, 38, 36
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}.get(os.uname().machine, -1)

_SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(os.uname().machine, -1)
PERF_HARDWARE, PERF_SOFTWARE = 0, 1
PERF_CYCLES, PERF_INSTRUCTIONS = 0, 1
"""Counters of the hardware; of the software these are two clocks."""
_PERF_FLAG_PID_CGROUP, _PERF_FLAG_FD_CLOEXEC = 4, 8
_PERF_FORMAT = 1 | 2 | 8
"""A read tells the times enabled and running, and the values of all of a group of counters."""
_PERF_ATTR = struct.Struct("=IIQQQQQIIQ")
"""perf_event_attr of the first version, 64 bytes: type, size, config, period, sample type, read format, flags, and zeros."""

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces that ``flags`` names for new ones."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int) -> None:
    """Enter the namespace of a file under ``/proc/<pid>/ns``."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(0)), "setns")


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """mount(2); the error names the target."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    done = _libc.mount(*texts, ctypes.c_ulong(flags), None if data is None else data.encode())
    _check(done, f"mount {target}")


def unmount(target: str, flags: int = 0) -> None:
    """umount2(2)."""
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), f"unmount {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    """pivot_root(2)."""
    _check(_libc.syscall(ctypes.c_long(_SYS_PIVOT_ROOT), os.fsencode(new_root), os.fsencode(put_old)), "pivot_root")


def perf_event_open(kind: int, counter: int, group: int, cpu: int, leader: int = -1) -> int:
    """A descriptor that counts what the control group of an open folder does on one CPU; with ``leader`` while that counts."""
    attr = _PERF_ATTR.pack(kind, _PERF_ATTR.size, counter, 0, 0, _PERF_FORMAT, 0, 0, 0, 0)
    flags = _PERF_FLAG_PID_CGROUP | _PERF_FLAG_FD_CLOEXEC
    numbers = (ctypes.c_int(group), ctypes.c_int(cpu), ctypes.c_int(leader), ctypes.c_ulong(flags))
    found = _libc.syscall(ctypes.c_long(_SYS_PERF_EVENT_OPEN), attr, *numbers)
    _check(min(found, 0), "perf_event_open")
    return int(found)


def sethostname(name: str) -> None:
    """Set the host name of this UTS namespace."""
    raw = name.encode()
    _check(_libc.sethostname(raw, ctypes.c_size_t(len(raw))), "sethostname")


def watch_writes(file: str) -> int:
    """A descriptor that can be read, without waiting, once the file is written to or cut."""
    watch = _libc.inotify_init1(ctypes.c_int(os.O_NONBLOCK | os.O_CLOEXEC))
    _check(min(watch, 0), "inotify_init1")
    try:
        _check(min(_libc.inotify_add_watch(watch, os.fsencode(file), ctypes.c_uint32(_IN_MODIFY)), 0), f"watch {file}")
    except OSError:
        os.close(watch)
        raise
    return int(watch)


def become_subreaper() -> None:
    """Processes that lose their parent below this one become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: int) -> None:
    """Be sent ``signal_number`` when the parent ends. To be called after the last change of user."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def forbid_new_privileges() -> None:
    """No program that this process starts gains rights by its file's bits."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_process_name(name: str) -> None:
    """The name that ``ps`` shows, up to 15 characters."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _prctl(_PR_SET_NAME, ctypes.addressof(buffer))


def _prctl(option: int, argument: int) -> None:
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(argument), zero, zero, zero), "prctl")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
