"""References: what the parts below can do at best on this machine, measured in the same run."""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from kube import Edit, Key
from tidegate.codec.facts import FactSet, encode


def four_processes_ms() -> float:
    """Starting four `sleep` processes and seeing them run, nothing else."""
    began = time.perf_counter()
    processes = [subprocess.Popen(["sleep", "60"]) for _ in range(4)]
    for process in processes:
        while b"sleep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.0005)
    took = (time.perf_counter() - began) * 1000
    for process in processes:
        process.kill()
        process.wait()
    return took


def idle_python_mib() -> float:
    """Resident memory of a Python process that has gRPC and protobuf loaded and does nothing."""
    code = (
        "import grpc, google.protobuf.message, re\n"
        "print(int(re.search(r'VmRSS:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024)"
    )
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


async def append_rate(sets: int = 300, size: int = 100) -> float:
    """Pods a second that one writer appends to a durable log in change sets of ``size``, each guarded and awaited."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ServerSettings(Path(folder), free_port(), "t")
        server = await asyncio.create_subprocess_exec(
            *command(settings), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        await wait_until_open(settings.host, settings.port)
        bus = await JetStreamBus.connect(settings.url, "reference", token="t")
        log, body = bus.log("fact"), {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
        began = time.perf_counter()
        for number in range(sets):
            changes = tuple(
                Edit(Key("Pod", "default", f"p{number}-{index}"), f"u{number}-{index}", {}, body, {}, fresh=True)
                for index in range(size)
            )
            await log.append(encode(FactSet(0, changes)), expected=number, message_id=f"m{number}")
        took = time.perf_counter() - began
        await bus.close()
        server.kill()
        await server.wait()
    return sets * size / took
