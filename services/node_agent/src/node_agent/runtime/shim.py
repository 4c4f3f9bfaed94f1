"""The process that stands between the agent and one container, and outlives the agent.

It starts the container's process, waits for it, ends what it left behind, and writes how it ended to the state file. It
holds the claim to its attempt: the state file is made once, so that no attempt is started twice, whoever asks.

Standard library only. State file (JSON): ``attempt``, ``shim``, ``shim_started``; once started ``pid``, ``started``,
``started_at``; at the end ``exit_code``, ``reason``, ``message``, ``finished_at``.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from node_agent.runtime import container, processes, syscalls
from node_agent.runtime.log_times import TimeKeeper

CLAIMED = "claimed"
_SPARE_BYTES = 4096
_GROWING_MS, _UNWATCHED_MS = 20, 250
"""How often a log that grows is looked at, and one that cannot be watched."""


def run(request: Mapping[str, Any], reply: int) -> None:
    """Be the shim of the request's container until it has ended; the first news goes to the fd ``reply``.

    Besides what ``container.become`` reads the request has ``state`` and ``log`` (files), ``attempt`` and ``oom`` (the
    cgroup's file that counts processes killed for want of memory, or None).
    """
    os.setsid()
    syscalls.set_process_name("tidegate-shim")
    syscalls.become_subreaper()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    state = {
        "attempt": request["attempt"],
        "shim": os.getpid(),
        "shim_started": processes.start_time(os.getpid()),
    }
    try:
        claimed = _claim(Path(request["state"]), state)
    except OSError as error:
        _tell(reply, state | _unstarted(f"{error.strerror}: {request['state']}"))
        return
    if not claimed:
        _tell(reply, {"error": CLAIMED})
        return
    _watch(request, state, reply)


def _unstarted(message: str) -> dict[str, Any]:
    """What is told of a container whose process was not started."""
    code = container.START_ERROR
    return {"exit_code": code, "reason": "StartError", "message": message, "finished_at": _now()}


def _watch(request: Mapping[str, Any], state: dict[str, Any], reply: int) -> None:
    file = Path(request["state"])
    killed_before = _count_oom(request.get("oom"))
    pid, failure = _start(request)
    if failure:
        os.waitpid(pid, 0)
        state |= _unstarted(failure)
        _write(file, state)
        _tell(reply, state)
        return
    state |= {"pid": pid, "started": processes.start_time(pid), "started_at": _now()}
    _write(file, state)
    _tell(reply, state)
    times = TimeKeeper(Path(request["log"]))
    exit_code = _wait_for(pid, times)
    killed = _count_oom(request.get("oom")) > killed_before
    _end_orphans()
    times.note(_now())
    reason = "OOMKilled" if exit_code and killed else "Error" if exit_code else "Completed"
    _write(file, state | {"exit_code": exit_code, "reason": reason, "message": "", "finished_at": _now()})


def _start(request: Mapping[str, Any]) -> tuple[int, str]:
    """Fork the container's process; returns when it has become its program, or why it has not."""
    output = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
    reading, failure = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        container.become(request, output, failure)
    os.close(failure)
    os.close(output)
    with os.fdopen(reading, "rb") as stream:
        message = stream.read().decode(errors="replace")
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    return pid, message


def _wait_for(pid: int, times: TimeKeeper) -> int:
    """The exit code of ``pid``, 128 and the signal's number for one that a signal ended.

    Until then what else ends is reaped, and ``times`` are noted: at once when the log begins to grow, else now and then.
    """
    child_ended = _wake_for_children()
    both = select.poll()
    both.register(child_ended, select.POLLIN)
    if times.changes >= 0:
        both.register(times.changes, select.POLLIN)
    only_child = select.poll()
    only_child.register(child_ended, select.POLLIN)
    while True:
        with suppress(BlockingIOError):
            os.read(child_ended, _SPARE_BYTES)
        status = _reap(pid)
        grown = times.note(_now())
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if grown:
            only_child.poll(_GROWING_MS)
        else:
            both.poll(None if times.changes >= 0 else _UNWATCHED_MS)


def _wake_for_children() -> int:
    """A descriptor that can be read, without waiting, once a child has ended."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    return reading


def _reap(pid: int) -> int | None:
    """The status of ``pid`` if it has ended, with all else that has."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == pid:
            return status
        if not ended:
            return None


def _end_orphans() -> None:
    """Kill what the container left behind: as the subreaper, all of it becomes a child of ours sooner or later."""
    while True:
        for pid in processes.children(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _count_oom(file: str | None) -> int:
    try:
        lines = Path(file).read_text().splitlines() if file else []
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def _claim(file: Path, state: Mapping[str, Any]) -> bool:
    """Make the state file, if nobody has; with room set aside for its later versions. Raises OSError where there is none."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(state))
        try:
            file.hardlink_to(draft)
        except FileExistsError:
            return False
    finally:
        draft.unlink(missing_ok=True)
    try:
        for spare in _spares(file):
            spare.write_bytes(bytes(_SPARE_BYTES))
    except OSError:
        _drop_spares(file)
        file.unlink()
        raise
    return True


def _write(file: Path, state: Mapping[str, Any]) -> None:
    """Replace the state file. How a container ended must be written though the folder is full: into room set aside."""
    spare = next((one for one in _spares(file) if one.exists()), file.with_name(f"{file.name}.new"))
    with os.fdopen(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "w") as stream:
        stream.write(json.dumps(state))
        stream.truncate()
    spare.replace(file)
    if "exit_code" in state:
        _drop_spares(file)


def _spares(file: Path) -> list[Path]:
    return [file.with_name(f"{file.name}.{name}") for name in ("started", "ended")]


def _drop_spares(file: Path) -> None:
    for spare in _spares(file):
        spare.unlink(missing_ok=True)


def _tell(reply: int, news: Mapping[str, Any]) -> None:
    try:
        os.write(reply, json.dumps(news).encode() + b"\n")
    except BrokenPipeError:  # the agent has ended meanwhile; the state file tells its successor
        print("nobody waits for this container's start any more", file=sys.stderr)
    os.close(reply)


def _now() -> int:
    return time.time_ns() // 1_000_000
