"""Open, Closing, Closed: by command, by parent, and when a queue has emptied."""

from typing import Any

from queue_manager.domain.quotas.queue_tree import CLOSED_BY_PARENT


def mark(cluster: Any, queue: str) -> Any:
    return cluster.read("Queue.scheduling.volcano.sh", queue, "").annotations.get(CLOSED_BY_PARENT)


def test_every_queue_becomes_open_the_built_in_ones_too(cluster: Any) -> None:
    cluster.queue("q")
    cluster.settle()
    assert [cluster.state(name) for name in ("root", "default", "q")] == ["Open", "Open", "Open"]
    assert cluster.settle() == []


def test_a_closed_queue_ends_when_it_is_empty_and_opens_again(cluster: Any) -> None:
    """Running work goes on meanwhile; the command is gone when it was obeyed."""
    cluster.queue("harbour")
    cluster.group("one", minMember=1, queue="harbour")
    cluster.settle()
    cluster.command("shut", "CloseQueue", "harbour")
    cluster.settle()
    assert cluster.state("harbour") == "Closing"
    assert not cluster.store.of_kind("Command.bus.volcano.sh")
    assert cluster.entitled["harbour"]["open"] is False
    cluster.remove("PodGroup.scheduling.volcano.sh", "one")
    cluster.settle()
    assert cluster.state("harbour") == "Closed"
    cluster.command("reopen", "OpenQueue", "harbour")
    cluster.settle()
    assert cluster.state("harbour") == "Open"
    assert cluster.entitled["harbour"]["open"] is True


def test_a_group_that_comes_to_a_closed_queue_waits_with_the_reason(cluster: Any) -> None:
    cluster.queue("q")
    cluster.settle()
    cluster.command("c", "CloseQueue", "q")
    cluster.settle()
    cluster.group("g", minMember=1, queue="q")
    cluster.settle()
    assert cluster.told("g") == "queue q is Closed and takes no new work"
    cluster.command("o", "OpenQueue", "q")
    cluster.settle()
    assert cluster.group_status("g")["phase"] == "Inqueue"


def test_closing_a_parent_closes_and_opening_it_opens_its_own_children_only(cluster: Any) -> None:
    """A team that had been closed by itself stays closed."""
    cluster.queue("dept")
    for team in ("a", "b"):
        cluster.queue(team, parent="dept")
    cluster.queue("a1", parent="a")
    cluster.settle()
    cluster.command("c1", "CloseQueue", "b")
    cluster.settle()
    cluster.command("c2", "CloseQueue", "dept")
    cluster.settle()
    assert [cluster.state(name) for name in ("dept", "a", "a1", "b")] == ["Closed"] * 4
    assert [mark(cluster, name) for name in ("dept", "a", "a1", "b")] == [None, "true", "true", None]
    cluster.command("c3", "OpenQueue", "a")
    refused = cluster.settle()
    assert [(found.name, found.reason) for found in refused] == [("QueueCommandRefused", "ParentClosed")]
    assert cluster.state("a") == "Closed"
    cluster.command("c4", "OpenQueue", "dept")
    cluster.settle()
    assert [cluster.state(name) for name in ("dept", "a", "a1", "b")] == ["Open", "Open", "Open", "Closed"]
    assert mark(cluster, "a") is None


def test_a_queue_made_under_a_closed_parent_is_closed(cluster: Any) -> None:
    cluster.queue("dept")
    cluster.settle()
    cluster.command("c", "CloseQueue", "dept")
    cluster.settle()
    cluster.queue("team", parent="dept")
    cluster.settle()
    assert cluster.state("team") == "Closed" and mark(cluster, "team") == "true"


def test_impossible_commands_are_taken_away_with_the_reason(cluster: Any) -> None:
    """A missing queue, the root, an unknown action."""
    cluster.settle()
    for name, action, queue in (("a", "CloseQueue", "ghost"), ("b", "CloseQueue", "root"), ("c", "Dance", "default")):
        cluster.command(name, action, queue)
    reasons = [found.reason for found in cluster.settle() if found.name == "QueueCommandRefused"]
    assert reasons == ["QueueMissing", "RootStaysOpen", "ActionUnknown"]
    assert not cluster.store.of_kind("Command.bus.volcano.sh")


def test_a_command_about_a_job_is_left_alone(cluster: Any) -> None:
    manifest = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": "c"}}
    cluster.put({**manifest, "action": "AbortJob", "target": {"kind": "Job", "name": "j"}})
    cluster.settle()
    assert len(cluster.store.of_kind("Command.bus.volcano.sh")) == 1


def test_two_commands_are_obeyed_in_the_order_of_their_creation(cluster: Any) -> None:
    cluster.queue("q")
    cluster.settle()
    cluster.command("z", "CloseQueue", "q")
    cluster.now += 1000
    cluster.command("a", "OpenQueue", "q")
    cluster.settle()
    assert cluster.state("q") == "Open"
