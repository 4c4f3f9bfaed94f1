"""Two processes that both take themselves for the one that decides, or that writes the facts: only one of them may."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tidegate_system_gangs import clean, is_whole, ring

from bus import Bus
from tidegate import subjects
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2
from tidegate.services import DECIDERS

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]


@contextmanager
def second(system, service: str) -> Iterator[subprocess.Popen]:
    """Another process of ``service`` on the same bus and data, under a name of its own; it has started."""
    text = (system.folder / "nats" / "nats.conf").read_text()
    address, token = re.search(r'listen: "(.*)"', text)[1], re.search(r'token: "(.*)"', text)[1]
    # What is meant for the tests, a service would take for a setting that it does not know.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    words = ["--nats-url", f"nats://{address}", "--data-dir", str(system.folder), "--holder", "second"]
    if service == "gang_scheduler":
        # As on any single machine: it is told so when it is started, and would else leave a machine alone that is busy.
        words += ["--load-aware", "false"]
    file = system.folder / "logs" / f"second_{service}.log"
    with file.open("ab") as log:
        before = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", f"{service}.main", *words],
            env={**kept, "TIDEGATE_NATS_TOKEN": token},
            stdout=log,
            stderr=log,
        )
    try:
        system.eventually(lambda: b'"event": "started"' in file.read_bytes()[before:] or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """The process hangs: it does nothing, keeps its connections, and knows nothing of the time that passes."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def terms(system, service: str) -> list[str]:
    """For each entry of a service's log ``term`` for a term's beginning, else how many decisions it has."""

    async def read(bus: Bus) -> list[str]:
        entries = await log_entries(bus, subjects.decisions(service))
        commits = [decision_pb2.Commit.FromString(entry.payload) for entry in entries]
        return ["term" if one.leader_started else str(len(list(decode_commit(one)))) for one in commits]

    from tidegate_system_log_audit import entries_of as log_entries

    return system.on_bus(read)


@pytest.mark.parametrize("service", DECIDERS)
def test_a_second_decider_waits_and_decides_nothing(system, service: str) -> None:
    before = terms(system, service).count("term")
    with second(system, service) as process:
        system.apply(ring("one"))
        system.finally_right(lambda: is_whole(system, ["one"]))
        assert process.poll() is None, "the second instance has given up"
    assert terms(system, service).count("term") == before
    clean(system, ["one"])


def test_a_decider_that_hung_finds_a_successor_and_decides_nothing_more(system) -> None:
    system.apply(ring("before"))
    system.finally_right(lambda: is_whole(system, ["before"]))
    before = terms(system, "gang_scheduler").count("term")
    with second(system, "gang_scheduler"):
        with frozen(system.pid("gang_scheduler")):
            system.apply(ring("meanwhile"))
            system.finally_right(lambda: is_whole(system, ["before", "meanwhile"]))
            assert terms(system, "gang_scheduler").count("term") == before + 1
        system.apply(*(ring(f"after-{number}") for number in range(5)))
        names = ["before", "meanwhile", *(f"after-{number}" for number in range(5))]
        system.finally_right(lambda: is_whole(system, names))
    # With the successor killed the first takes the lead again, by its own claim.
    system.apply(ring("alone"))
    system.finally_right(lambda: is_whole(system, [*names, "alone"]))
    clean(system, [*names, "alone"])


def test_a_gateway_that_hung_writes_nothing_once_it_has_a_successor(system) -> None:
    system.apply(ring("before"))
    system.finally_right(lambda: is_whole(system, ["before"]))
    with second(system, "cluster_gateway"):
        first = system.pid("cluster_gateway")
        with frozen(first):
            system.apply(ring("meanwhile"))
            system.finally_right(lambda: is_whole(system, ["before", "meanwhile"]))
        system.apply(ring("after"))
        system.finally_right(lambda: is_whole(system, ["before", "meanwhile", "after"]))
        system.eventually(lambda: system.pid("cluster_gateway") != first)
    system.apply(ring("alone"))
    names = ["before", "meanwhile", "after", "alone"]
    system.finally_right(lambda: is_whole(system, names))
    clean(system, names)


def test_a_second_supervisor_on_the_same_folder_is_refused(system) -> None:
    words = ["up", "--data-dir", str(system.folder)]
    refused = subprocess.run(
        [sys.executable, "-m", "tidegate_cli.main", *words], capture_output=True, text=True, timeout=90
    )
    assert refused.returncode != 0 and "runs in" in refused.stderr and "tidegate down" in refused.stderr
