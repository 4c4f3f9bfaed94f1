"""Whether there is room: users' objects are refused in time, what makes room is not."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_gateway.gateway import Gateway
from cluster_gateway.room import Room
from kube import Key
from tidegate import subjects
from tidegate.gateway.v1 import gateway_pb2

FULL = "the data folder is full"


def free(monkeypatch: pytest.MonkeyPatch, mebibytes: int) -> None:
    found = SimpleNamespace(f_bavail=mebibytes << 8, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: found)


def test_there_is_room_down_to_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(tmp_path, 64 << 20)
    free(monkeypatch, 64)
    assert room.complaint() == ""
    free(monkeypatch, 63)
    assert room.complaint() == (
        f"the data folder {tmp_path} is full: 63 MiB are free, 64 MiB are needed to take in more; make room and try again"
    )


def test_a_reserve_of_nothing_never_complains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 0)
    assert Room(tmp_path, 0).complaint() == ""


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in Room(tmp_path / "gone", 1).complaint()


@pytest.fixture
def cramped(rig: Any) -> Any:
    """A gateway that has no room while ``rig.full`` is set."""
    rig.full = False
    rig.kill()
    uids = iter(range(1000))
    rig.gateway = Gateway(
        rig.bus,
        rig.clock,
        rig.settings,
        rig.secrets,
        lambda: f"u{next(uids)}",
        no_room=lambda: FULL if rig.full else "",
    )
    rig.task = rig.loop.create_task(rig.gateway.run())
    rig.loop.settle()
    return rig


def ask(rig: Any, request: gateway_pb2.WriteRequest) -> gateway_pb2.WriteReply:
    return gateway_pb2.WriteReply.FromString(rig.do(rig.bus.request(subjects.WRITE, request.SerializeToString())))


def test_without_room_nothing_new_is_taken_in_and_deleting_goes_on(cramped: Any) -> None:
    key = Key("ConfigMap", "default", "a")
    blobs = [b'{"name":"a"}', b'{"data":{}}']
    write = gateway_pb2.Write(kind=key.kind, namespace=key.namespace, name=key.name, metadata=1, body=2)
    storing = gateway_pb2.WriteRequest(id="1", actor="user", writes=[write], blobs=blobs)
    assert not ask(cramped, storing).error
    cramped.full = True
    storing.id, storing.writes[0].name = "2", "b"
    refused = ask(cramped, storing)
    assert (refused.error, refused.conflict_revision) == (FULL, 0)
    assert cramped.gateway.local.store.get(Key("ConfigMap", "default", "b")) is None
    gone = gateway_pb2.Write(delete=True, kind=key.kind, namespace=key.namespace, name=key.name, force=True)
    assert not ask(cramped, gateway_pb2.WriteRequest(id="3", actor="user", writes=[gone])).error
    assert cramped.gateway.local.store.get(key) is None
    cramped.full = False
    assert not ask(cramped, storing).error
