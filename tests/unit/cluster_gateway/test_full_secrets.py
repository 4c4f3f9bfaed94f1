"""There is no room to keep the values of a Secret: what brought them is refused whole, and everything else goes on."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus import MemoryBus
from cluster_gateway import secrets as keeping
from cluster_gateway.secrets import FileSecrets, SecretsNotKept
from kube import Decision, Key, Manifest, Mutation, Verb

KEY, OTHER = Key("Secret", "default", "s"), Key("Secret", "default", "t")


class Disk:
    """A disk that can be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 1_000
        real = keeping._write

        def write(file: Path, data: Any) -> None:
            if self.room <= 0:
                file.touch()
                raise OSError(errno.ENOSPC, "No space left on device")
            self.room -= 1
            real(file, data)

        monkeypatch.setattr(keeping, "_write", write)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    yield Disk(monkeypatch)


def manifest(kind: str, name: str, **parts: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **parts}


@pytest.fixture
def files(rig: Any, tmp_path: Path) -> FileSecrets:
    made = FileSecrets(tmp_path / "secrets")
    rig.kill()
    rig.bus, rig.secrets = MemoryBus(), made
    rig.start()
    return made


def test_a_write_is_refused_with_the_reason_and_nothing_of_it_is_done(rig: Any, files: FileSecrets, disk: Disk) -> None:
    rig.write(manifest("Secret", "s", stringData={"a": "old"}))
    disk.room = 1
    reply = rig.write(
        manifest("ConfigMap", "c"),
        manifest("Secret", "s", stringData={"a": "new"}),
        manifest("Secret", "t", stringData={"b": "x"}),
        force=True,
    )
    assert "No space left on device" in reply.error and "default/s, default/t" in reply.error
    assert reply.conflict_revision == 0
    assert rig.get("ConfigMap", "c") is None and rig.get("Secret", "t") is None
    assert files.get(KEY) == {"a": b"old"} and files.get(OTHER) is None
    assert not list(files._folder.glob("*.new"))


def test_the_gateway_goes_on_and_takes_the_same_write_once_there_is_room(
    rig: Any, files: FileSecrets, disk: Disk
) -> None:
    disk.room = 0
    assert rig.write(manifest("Secret", "s", stringData={"a": "x"})).error
    assert not rig.write(manifest("ConfigMap", "c")).error
    disk.room = 10
    assert not rig.write(manifest("Secret", "s", stringData={"a": "x"})).error
    assert files.get(KEY) == {"a": b"x"} and rig.get("Secret", "s").body == {"data": {"a": ""}}


def test_a_deletion_and_values_that_go_need_no_room(rig: Any, files: FileSecrets, disk: Disk) -> None:
    rig.write(manifest("Secret", "s", stringData={"a": "x", "b": "y"}))
    disk.room = 0
    assert not rig.write(manifest("Secret", "s", data={"a": ""}), force=True).error
    assert rig.get("Secret", "s").body == {"data": {"a": ""}}
    disk.room = 10
    rig.write(manifest("ConfigMap", "c"))
    assert files.get(KEY) == {"a": b"x"}, "what was left behind goes with the next change"


def test_a_decision_is_refused_whole(rig: Any, files: FileSecrets, disk: Disk) -> None:
    disk.room = 0
    mutations = tuple(
        Mutation(Verb.CREATE, key, manifest={"metadata": {}, "stringData": {"a": "x"}})
        for key in (Key("ConfigMap", "default", "c"), KEY)
    )
    rig.decide("job_controller", Decision("Made", Key("ConfigMap", "default", "c"), mutations=mutations))
    assert rig.get("ConfigMap", "c") is None and rig.get("Secret", "s") is None
    assert not rig.write(manifest("ConfigMap", "d")).error


def test_values_of_several_are_kept_all_or_none(tmp_path: Path, disk: Disk) -> None:
    secrets = FileSecrets(tmp_path)
    secrets.put_all({KEY: {"a": b"1"}, OTHER: {"a": b"1"}})
    disk.room = 1
    with pytest.raises(SecretsNotKept):
        secrets.put_all({KEY: {"a": b"2"}, OTHER: {"a": b"2"}})
    assert secrets.get(KEY) == secrets.get(OTHER) == {"a": b"1"}
