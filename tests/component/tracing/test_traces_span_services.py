"""One trace goes from a user's request over the bus through every service that it moves."""

import json
from pathlib import Path

from admission.applier import Applier, Change
from admission.view import View
from bus import MemoryBus
from chassis import Decider, LoopClock, Measures, Workplace
from chassis.tracing import FileTracer
from chassis.virtual_time import VirtualLoop
from cluster_gateway.domain.simulated_nodes import SimulationSettings
from cluster_gateway.gateway import Gateway
from cluster_gateway.secrets import MemorySecrets
from cluster_gateway.settings import GatewaySettings
from job_controller.domain.core import JobCore
from job_controller.role import ROLE

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"tasks": [{"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}}]},
}


def test_a_job_is_one_trace_from_apply_to_the_group_that_it_wants(tmp_path: Path) -> None:
    loop, bus = VirtualLoop(), MemoryBus()
    tracers = {name: FileTracer(name, tmp_path / name) for name in ("admission", "gateway", "job_controller")}
    settings = GatewaySettings(simulation=SimulationSettings(all_nodes=True))
    uids = iter(f"uid-{number}" for number in range(1000))
    view = View(bus)
    gateway = Gateway(bus, LoopClock(), settings, MemorySecrets(), lambda: next(uids), tracer=tracers["gateway"])
    applier = Applier(bus, view, tracers["admission"])
    jobs = Decider(ROLE, JobCore, Workplace(bus, LoopClock(), Measures("job_controller"), tracers["job_controller"]))
    tasks = [loop.create_task(part.run()) for part in (gateway, view, applier, jobs)]
    loop.settle()
    applied = loop.create_task(applier.apply("user", [Change(JOB)]))
    loop.settle()
    assert applied.result()[0][0].outcome == "created"
    for task in tasks:
        task.cancel()
    loop.settle()
    loop.close()
    for tracer in tracers.values():
        tracer.close()

    spans = {name: [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] for name in tracers}
    (applying,) = spans["admission"]
    trace = applying["context"]["trace_id"]
    assert trace in {span["context"]["trace_id"] for span in spans["gateway"]}
    assert trace in {span["context"]["trace_id"] for span in spans["job_controller"]}
