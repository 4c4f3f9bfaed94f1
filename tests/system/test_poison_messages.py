"""Messages that nobody can read stand in the logs: they are parked with their error, and everything goes on."""

import subprocess
import sys
import time

import pytest
from tidegate_system_gangs import clean, is_whole, ring

from bus import Bus, StaleWriter
from kube import Decision, Key, Mutation, Verb
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.fact.v1 import fact_pb2
from tidegate.services import DECIDERS, SERVICES

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

GARBAGE = b"\xff\xfe this is no message \x00"


def put(system, log_name: str, payload: bytes) -> int:
    """Write into a log behind its writer's back; its sequence."""

    async def append(bus: Bus) -> int:
        log = bus.log(log_name)
        while True:
            try:
                return await log.append(payload, expected=await log.last(), message_id=f"poison/{time.time_ns()}")
            except StaleWriter:
                continue

    return system.on_bus(append)


def dead(system) -> str:
    """What `tidegate events --dead` prints."""
    words = ["--data-dir", str(system.folder), "events", "--dead"]
    return subprocess.run(
        [sys.executable, "-m", "tidegate_cli.main", *words], capture_output=True, text=True, timeout=90, check=True
    ).stdout


def goes_on(system, name: str) -> None:
    """New work is done, also by services that have to read the logs from their beginning."""
    system.apply(ring(name))
    system.finally_right(lambda: is_whole(system, [name]))
    system.kill(*SERVICES)
    system.apply(ring(f"{name}-again"))
    system.finally_right(lambda: is_whole(system, [name, f"{name}-again"]))
    clean(system, [name, f"{name}-again"])


@pytest.mark.parametrize("service", DECIDERS)
def test_garbage_in_the_decisions_is_parked_and_the_service_goes_on(system, service: str) -> None:
    sequence = put(system, subjects.decisions(service), GARBAGE)
    system.eventually(lambda: f"{subjects.decisions(service)}/{sequence}" in dead(system))
    goes_on(system, f"after-{service.replace('_', '-')}")


def test_garbage_in_the_facts_is_parked_and_everybody_goes_on(system) -> None:
    sequence = put(system, subjects.FACTS, GARBAGE)
    system.eventually(lambda: dead(system).count(f"{subjects.FACTS}/{sequence}") >= 6)
    assert "DecodeError" in dead(system)
    goes_on(system, "after-facts")


def test_a_change_set_of_nonsense_is_parked_and_everybody_goes_on(system) -> None:
    """It is a message of the right form whose references lead nowhere."""
    message = fact_pb2.ChangeSet(at_ms=1)
    message.changes.add(kind=7, namespace="default", name="x", uid="u", body=99)
    sequence = put(system, subjects.FACTS, message.SerializeToString())
    system.eventually(lambda: f"{subjects.FACTS}/{sequence}" in dead(system))
    goes_on(system, "after-nonsense")


def test_a_decision_that_cannot_be_carried_out_is_refused_whole(system) -> None:
    """One mutation of it is fine and one is nonsense: nothing of it is done, and its outcome says so."""
    system.apply(ring("victim"))
    system.finally_right(lambda: is_whole(system, ["victim"]))
    key = Key("Job.batch.volcano.sh", "default", "victim")
    mutations = (
        Mutation(Verb.PATCH, key, patch={"metadata": {"labels": {"half": "done"}}}),
        Mutation(Verb.PATCH, key, patch={"metadata": "not an object"}),
    )
    decision = Decision("Nonsense", key, mutations=mutations)
    head = CommitHead("job_controller", 1 << 40, 1 << 40, 1)
    put(system, subjects.decisions("job_controller"), encode_commit(head, [("job_controller/poison/1", decision)]))
    system.kill("job_controller")
    system.apply(ring("next"))
    system.finally_right(lambda: is_whole(system, ["victim", "next"]))
    assert "half" not in system.get("job", "victim")["metadata"].get("labels", {})
    clean(system, ["victim", "next"])


def test_a_late_and_doubled_report_of_a_node_changes_nothing(system) -> None:
    """Reports of pods that are gone, of pods of another uid, and old states of pods that run."""
    from tidegate.node.v1 import node_pb2

    system.apply(ring("told"))
    system.finally_right(lambda: is_whole(system, ["told"]))
    pods = system.all_of("pods")
    node = pods[0]["spec"]["nodeName"]
    report = node_pb2.Report(node=node, gone=["no-such-uid", pods[0]["metadata"]["uid"]])
    for pod in pods:
        names = {"namespace": "default", "name": pod["metadata"]["name"]}
        report.pods.add(uid=pod["metadata"]["uid"], status=b'{"phase":"Pending"}', **names)
        report.pods.add(uid="another-uid", status=b'{"phase":"Failed"}', **names)

    async def tell(bus: Bus) -> None:
        for _ in range(3):
            await bus.request(subjects.report(node), report.SerializeToString())

    system.on_bus(tell)
    assert is_whole(system, ["told"]) == []
    clean(system, ["told"])
