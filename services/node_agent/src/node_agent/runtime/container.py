"""From fork to exec: how a process becomes what runs in a container.

Standard library only, and nothing that waits: everything was prepared by the agent, and is in the request.
"""

import os
import resource
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from node_agent.runtime import namespaces, processes, syscalls

# What a program that cannot be started ends with, as containerd reports it.
START_ERROR = 128
# A user's processes go first when the machine itself runs out of memory.
OOM_SCORE = "500"


def become(request: Mapping[str, Any], output: int, failure: int) -> NoReturn:
    """Turn this freshly forked process into the request's program; on failure its reason goes to the fd ``failure``.

    ``output`` becomes its standard output and error. The request has ``argv``, ``env``, ``cwd``, ``cgroups`` (files to
    be written to), ``identity`` (user, group, groups; None to stay who we are), ``view`` (see ``namespaces.build``; None
    for the machine's own), ``own_user`` and, to join a running container instead of making namespaces, ``inside``.
    """
    parent = os.getppid()
    try:
        os.setsid()
        for file in request["cgroups"]:
            Path(file).write_text("0")
        _enter_namespaces(request)
        _wire(output, failure)
        _reset_signals()
        _drop(request.get("identity"))
        syscalls.die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we asked to be told
            os._exit(START_ERROR)
        _go_to(request["cwd"])
        _execute(request["argv"], request["env"])
    except BaseException as error:
        os.write(failure, _explain(request, error).encode())
    os._exit(START_ERROR)


def _enter_namespaces(request: Mapping[str, Any]) -> None:
    own_user, inside, view = bool(request["own_user"]), request.get("inside"), request.get("view")
    if inside is not None:
        if not processes.is_alive(inside["pid"], inside["started"]):
            raise ProcessLookupError("the container does not run")
        if inside["namespaces"]:
            namespaces.enter_of(inside["pid"], own_user)
    elif view is not None:
        identity = request.get("identity") or {"user": os.getuid(), "group": os.getgid(), "groups": []}
        namespaces.enter_new(own_user)
        namespaces.build(view, identity["user"], [identity["group"], *identity["groups"]])


def _wire(output: int, failure: int) -> None:
    source = os.open("/dev/null", os.O_RDONLY)
    os.dup2(source, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # Whatever else is open here belongs to the agent's side.
    os.closerange(3, failure)
    os.closerange(failure + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    os.set_inheritable(failure, False)


def _reset_signals() -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _drop(identity: Mapping[str, Any] | None) -> None:
    try:
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    except OSError:
        pass
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if identity is not None:
        os.setgroups(identity["groups"])
        os.setresgid(identity["group"], identity["group"], identity["group"])
        os.setresuid(identity["user"], identity["user"], identity["user"])
    syscalls.forbid_new_privileges()


def _go_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise OSError(error.errno, f"workingDir {folder}: {error.strerror}") from None


def _execute(argv: list[str], env: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError:
        where = "" if "/" in argv[0] else f" in PATH ({env.get('PATH', os.defpath)})"
        raise FileNotFoundError(f"executable file not found{where}") from None


def _explain(request: Mapping[str, Any], error: BaseException) -> str:
    what = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    return f"exec {request['argv'][0]!r}: {what}"
