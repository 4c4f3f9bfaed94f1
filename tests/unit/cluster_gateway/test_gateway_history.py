"""Snapshots, the history behind them, and where values of Secrets are kept."""

import stat
from pathlib import Path
from typing import Any

from cluster_gateway.secrets import FileSecrets
from kube import Key
from tidegate import subjects
from tidegate.fact.v1 import fact_pb2


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}


def test_a_snapshot_is_kept_every_so_many_change_sets_and_the_log_behind_it_is_trimmed(make_rig: Any) -> None:
    rig = make_rig(snapshot_entries=5, history_entries=8)
    log = rig.bus.log(subjects.FACTS)
    for number in range(20):
        rig.enact(lambda cluster, number=number: cluster.create(Key("ConfigMap", "default", f"c{number}"), {}, {}, {}))
    sequence, content = rig.do(log.snapshot())
    assert sequence == 20 and rig.do(log.last()) == 21
    assert rig.do(log.first()) == sequence - 8
    snapshot = fact_pb2.Snapshot.FromString(content)
    assert snapshot.revision == sequence and sum(len(part.changes) for part in snapshot.parts) == 19 + 6
    rig.restart()
    assert len(rig.gateway.local.store.of_kind("ConfigMap")) == 20


def test_restarts_do_not_put_the_next_snapshot_off(make_rig: Any) -> None:
    """A gateway that dies before every snapshot would otherwise read a longer log each time."""
    rig = make_rig(snapshot_entries=6)
    for number in range(4):
        rig.write(config(f"a{number}"), config(f"b{number}"))
        rig.restart()
        rig.write(config(f"c{number}"))
    assert rig.do(rig.bus.log(subjects.FACTS).snapshot()) is not None


def test_a_snapshot_that_is_asked_for_never_holds_what_is_not_stored_yet(make_rig: Any) -> None:
    """Asked for while a change set is on its way, it waits until that is stored."""
    rig = make_rig()
    log = rig.bus.log(subjects.FACTS)
    append, held = log.append, rig.loop.create_future()

    async def slow(payload: bytes, **options: Any) -> int:
        await held
        return await append(payload, **options)  # type: ignore[no-any-return]

    log.append = slow
    rig.loop.create_task(
        rig.gateway.enact(lambda cluster: cluster.create(Key("ConfigMap", "default", "c"), {}, {}, {}))
    )
    rig.loop.settle()
    asked = rig.loop.create_task(rig.gateway.snapshot())
    rig.loop.settle()
    assert rig.do(log.snapshot()) is None and not asked.done()
    held.set_result(None)
    rig.loop.settle()
    sequence, content = rig.do(log.snapshot())
    names = [change.name for part in fact_pb2.Snapshot.FromString(content).parts for change in part.changes]
    assert sequence == rig.do(log.last()) and "c" in names


def test_nobody_waits_while_a_snapshot_is_made_and_it_holds_what_was_when_it_was_due(make_rig: Any) -> None:
    rig = make_rig(snapshot_entries=5)
    log = rig.bus.log(subjects.FACTS)
    put, held = log.put_snapshot, rig.loop.create_future()

    async def slow(sequence: int, content: bytes) -> None:
        await held
        await put(sequence, content)

    log.put_snapshot = slow
    for number in range(12):
        rig.write(config(f"c{number}"))
        assert rig.gateway.local.store.get(Key("ConfigMap", "default", f"c{number}")).revision == rig.revision
    assert rig.do(log.snapshot()) is None
    held.set_result(None)
    rig.loop.settle()
    sequence, content = rig.do(log.snapshot(12))
    snapshot = fact_pb2.Snapshot.FromString(content)
    names = {change.name for part in snapshot.parts for change in part.changes}
    assert snapshot.revision == sequence == 5
    assert names & {f"c{number}" for number in range(12)} == {f"c{number}" for number in range(sequence - 1)}


def test_a_gateway_that_has_not_begun_keeps_no_snapshot(make_rig: Any) -> None:
    rig = make_rig()
    rig.kill()
    rig.do(rig.gateway.snapshot())
    assert rig.do(rig.bus.log(subjects.FACTS).snapshot()) is None


def test_a_change_set_without_changes_is_not_written(make_rig: Any) -> None:
    rig = make_rig()
    before = rig.revision
    rig.enact(lambda cluster: None)
    rig.gateway.wake()
    rig.loop.settle()
    assert rig.revision == before


def test_kept_values_are_read_by_their_owner_only_and_replaced_as_a_whole(tmp_path: Path) -> None:
    secrets, key = FileSecrets(tmp_path / "secrets"), Key("Secret", "team.a", "s.1")
    assert secrets.get(key) is None
    secrets.put_all({key: {"a": b"\x00\xff", "b": b""}})
    secrets.put_all({key: {"b": b"new"}})
    assert FileSecrets(tmp_path / "secrets").get(key) == {"b": b"new"}
    (file,) = (tmp_path / "secrets").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    secrets.drop(key)
    secrets.drop(key)
    assert secrets.get(key) is None and list((tmp_path / "secrets").iterdir()) == []
