"""What tests of snapshots share."""

from collections import Counter
from collections.abc import Callable

import pytest

from chassis.remaking import remake
from chassis.snapshots import Snapshots
from tidegate import subjects
from tidegate.codec.snapshots import pack, unpack
from tidegate.decision.v1 import decision_pb2
from tidegate_cli.sim.services import DECIDING, ROLES, core_of
from tidegate_cli.sim.world import World
from tidegate_cli.whatif.restoring import policy_of


@pytest.fixture
def remade() -> Callable[[World, str], Counter[str]]:
    """The names of a service's decisions, each of which comes out the same when it is made again from its snapshot."""

    def names(world: World, service: str) -> Counter[str]:
        taker, found = Snapshots(world.bus, ROLES["all"], "test"), Counter[str]()
        for entry in world.bus.log(subjects.decisions(service)).entries(0):
            for decision in decision_pb2.Commit.FromString(entry.payload).decisions[-1:]:
                taken = unpack(pack(world.do(taker.of_decision(decision.id))))
                for one in remake(taken, core_of(service, policy_of(taken)), DECIDING[service].interest).compared:
                    assert one.same, (one.made, one.remade)
                    found[one.made.name] += 1
        return found

    return names
