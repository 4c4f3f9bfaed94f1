"""Every decision of a real run, on the real bus, is made again from its snapshot: the same bytes come out."""

import pytest
from tidegate_system_gangs import clean, ring

from chassis.remaking import remake
from tidegate.codec.snapshots import unpack
from tidegate_cli.sim.services import DECIDING, core_of
from tidegate_cli.whatif.restoring import policy_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]


def test_a_decision_on_the_real_bus_comes_out_the_same(system) -> None:
    names = ["one", "two"]
    for name in names:
        system.apply(ring(name))
    waiting = ring("waits")
    waiting["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5000"}}
    system.apply(waiting)
    system.eventually(
        lambda: [
            one for one in system.patiently(lambda: system.client.events("default")) if one.name == "WaitExplained"
        ]
    )
    system.kill("gang_scheduler", "queue_manager")
    system.apply(ring("three"))
    system.eventually(lambda: (system.get("jobs.batch.volcano.sh", "three").get("status") or {}).get("running") == 3)
    made = system.patiently(lambda: system.client.events(limit=1000))
    seen = set()
    for happening in made:
        taken = unpack(system.patiently(lambda happening=happening: system.client.snapshot(happening.id)))
        core = core_of(happening.source, policy_of(taken))
        remade = remake(taken, core, DECIDING[happening.source].interest)
        assert [(one.made, one.remade) for one in remade.compared if not one.same] == []
        seen.add(happening.name)
    assert {"GangPlaced", "WaitExplained", "GroupAdmitted", "PodsWanted", "EntitlementsComputed"} <= seen
    clean(system, [*names, "three", "waits"])
