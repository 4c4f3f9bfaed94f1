"""Commands that ask the services themselves about a snapshot: whatif, snapshot, replay."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chassis.snapshots import Snapshots
from tidegate import subjects
from tidegate.api.v1 import api_pb2
from tidegate.codec.snapshots import pack, unpack
from tidegate.decision.v1 import decision_pb2
from tidegate_cli.sim.services import ROLES
from tidegate_cli.sim.world import World

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}


def gang(name: str, count: int, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    task = {"name": "w", "replicas": count, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": count, "tasks": [task]},
    }


@pytest.fixture
def bound(server: Any) -> Iterator[str]:
    """The server has a snapshot of a system in which job ``used`` runs; the id of the decision that placed it."""
    world = World({}, {})
    try:
        world.put_nodes([NODE])
        world.apply([gang("used", 1, "3")])
        world.settle()
        taker = Snapshots(world.bus, ROLES["all"], "test")
        commits = world.bus.log(subjects.decisions("gang_scheduler")).entries(0)
        decisions = [d for e in commits for d in decision_pb2.Commit.FromString(e.payload).decisions]
        found = next(decision.id for decision in decisions if decision.name == "GangPlaced")
        server.snapshots[found] = pack(world.do(taker.of_decision(found)))
        logs, _ = world.do(taker.logs())
        server.snapshots[""] = pack(
            taker.present(logs, list(world.store().objects.values()), world.view.standing(), world.now())
        )
        yield found
    finally:
        world.close()


def write(name: str, *manifests: dict[str, Any]) -> str:
    Path(name).write_text(yaml.safe_dump_all(manifests))
    return name


def test_whatif_tells_where_a_job_would_start(tidegate: Any, server: Any, bound: str) -> None:
    ended = tidegate("whatif", "-f", write("j.yaml", gang("small", 1, "1")))
    assert (ended.code, ended.out) == (0, "job/small: would start now\n  on n: small-w-0\n")
    assert list(server.asked) == ["Snapshot"], "nothing but a snapshot was asked for"


def test_whatif_tells_why_not_as_words_and_as_data(tidegate: Any, bound: str) -> None:
    file = write("j.yaml", gang("large", 2, "1"), gang("never", 1, "64"))
    ended = tidegate("whatif", "-f", file)
    assert "job/large: would wait" in ended.out and "0/1 nodes are available: 1 Insufficient cpu" in ended.out
    answers = json.loads(tidegate("whatif", "-f", file, "-o", "json").out)["answers"]
    assert [(one["name"], one["verdict"]) for one in answers] == [("job/large", "waits"), ("job/never", "waits")]
    details = [part for key, part in answers[1]["details"].items() if key.startswith("PodGroup")]
    assert details[0]["rule"] == "NeverFits" and details[0]["waysOut"]


def test_whatif_is_asked_about_what_is_there_already(tidegate: Any, bound: str) -> None:
    assert tidegate("whatif", "job/used").out == "job/used: runs already\n  on n: used-w-0\n"
    ended = tidegate("whatif", "job/nobody")
    assert ended.code == 1 and ended.out == "job/nobody: is not there\n"


def test_whatif_ends_with_1_where_an_object_would_be_refused(tidegate: Any, bound: str) -> None:
    ended = tidegate("whatif", "-f", write("j.yaml", {**gang("x", 1, "1"), "spec": {"queue": "nowhere"}}))
    assert ended.code == 1 and "job/x: would be refused" in ended.out


def test_a_snapshot_is_written_and_asked_offline(tidegate: Any, server: Any, bound: str) -> None:
    ended = tidegate("snapshot", "-o", "s.tgs")
    assert ended.out.startswith("s.tgs: ") and "objects as of revision" in ended.out
    server.failures["Snapshot"] = (None, "away")
    ended = tidegate("whatif", "-f", write("j.yaml", gang("small", 1, "1")), "--snapshot", "s.tgs")
    assert ended.out.startswith("job/small: would start now")


def test_without_a_name_the_file_is_called_after_the_revision(tidegate: Any, server: Any, bound: str) -> None:
    tidegate("snapshot")
    revision = unpack(server.snapshots[""]).facts.revision
    assert Path(f"snapshot-{revision}.tgs").read_bytes() == server.snapshots[""]


def test_a_decision_is_made_again_from_the_system_and_from_a_file(tidegate: Any, server: Any, bound: str) -> None:
    ended = tidegate("replay", bound)
    assert ended.code == 0 and ended.out.endswith("the same bytes\n")
    server.events = [api_pb2.Event(id=bound, about=api_pb2.ObjectName(kind="Job.batch.volcano.sh", name="used"))]
    assert tidegate("replay", "job/used").out == ended.out
    assert tidegate("snapshot", "--decision", bound, "-o", "d.tgs").code == 0
    told = json.loads(tidegate("replay", "d.tgs", "-o", "json").out)
    assert {"id": bound, "name": "GangPlaced", "same": True} in told["decisions"]


def test_a_decision_that_comes_out_otherwise_is_shown_beside_what_was_made(
    tidegate: Any, server: Any, bound: str
) -> None:
    taken = unpack(server.snapshots[bound])
    commit = decision_pb2.Commit.FromString(taken.commit)
    commit.decisions[0].message = "pod used-w-0 is bound to the moon"
    taken.commit = commit.SerializeToString()
    Path("d.tgs").write_bytes(pack(taken))
    ended = tidegate("replay", "d.tgs")
    assert ended.code == 1 and "other bytes" in ended.out and "made:  pod used-w-0 is bound to the moon" in ended.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("replay", "gang_scheduler/9/9"), "is not kept any more"),
        (("replay", "job/nobody"), "nothing was decided of late about job/nobody"),
        (("snapshot", "--decision", "gang_scheduler/9/9"), "is not kept any more"),
        (("whatif", "-f", "j.yaml", "--snapshot", "nothing.tgs"), "cannot be read"),
        (("whatif", "-f", "j.yaml", "--snapshot", "j.yaml"), "j.yaml: this is no snapshot"),
        (("whatif", "-f", "j.yaml", "--horizon", "soon"), "'soon' is no time"),
        (("whatif",), "say which files"),
    ],
)
def test_what_was_done_wrong_is_a_sentence(tidegate: Any, bound: str, words: tuple[str, ...], told: str) -> None:
    write("j.yaml", gang("small", 1, "1"))
    ended = tidegate(*words)
    assert ended.code in (1, 2) and told in ended.err


def test_a_snapshot_of_the_present_cannot_be_replayed(tidegate: Any, bound: str) -> None:
    tidegate("snapshot", "-o", "s.tgs")
    assert "was not taken for a decision" in tidegate("replay", "s.tgs").err


def test_explain_has_a_form_for_yaml(tidegate: Any, server: Any, pod: Any) -> None:
    server.put(pod("p"))
    server.lines["p"] = ["Pod/default/p: Waiting"]
    assert tidegate("explain", "pod/p", "-o", "yaml").out == "lines: 1\n"


def test_moves_tells_what_a_policy_would_move(tidegate: Any, bound: str) -> None:
    assert tidegate("moves").out == "Nobody would move: no strategy is set, nor thresholds of load\n"
    Path("policy.yaml").write_text("strategies: {PodLifeTime: {maxPodLifeTimeSeconds: 0}}")
    assert tidegate("moves", "--policy", "policy.yaml").out.startswith("Nobody would move at 2026-01-01T00:02:00Z\n")
    assert json.loads(tidegate("moves", "--policy", "policy.yaml", "-o", "json").out)["moves"] == []


def test_moves_tells_of_a_policy_that_cannot_be_read(tidegate: Any, bound: str) -> None:
    Path("policy.yaml").write_text("[1]")
    assert "holds no policy" in tidegate("moves", "--policy", "policy.yaml").err
    Path("policy.yaml").write_text("strategies: {Everything: {}}")
    ended = tidegate("moves", "--policy", "policy.yaml")
    assert ended.code == 1 and "the descheduler knows no Everything" in ended.err
    assert "cannot be read" in tidegate("moves", "--policy", "none.yaml").err
