"""A model is gathered beside its place, and moved there when it is whole; what broke off is gone on with."""

from pathlib import Path

import pytest

from storage_initializer.failures import FetchError, Interrupted
from storage_initializer.fetching import fetch
from storage_initializer.retries import TRIES, insist
from storage_initializer.staging import PART, Staging


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "", "a\x00b"])
def test_no_name_leads_out_of_the_model(tmp_path: Path, name: str) -> None:
    with pytest.raises(FetchError, match="no place inside"):
        Staging("s3://b/m", tmp_path).file(name)


def test_a_name_below_a_file_is_refused(tmp_path: Path) -> None:
    staging = Staging("s3://b/m", tmp_path)
    staging.file("a").write_text("x")
    with pytest.raises(FetchError, match="lies below a file"):
        staging.file("a/b")


def test_what_was_gathered_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    for name in ("old", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("old")
    staging = Staging("s3://b/m", tmp_path)
    staging.file("old/new").write_text("new")
    staging.file(f"old/{PART}").write_text("half")
    staging.publish(staging.root)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file()) == [
        "kept/file", "old/new",
    ]  # fmt: skip


def test_two_sources_of_one_folder_do_not_meet(tmp_path: Path) -> None:
    assert Staging("s3://b/m", tmp_path).root != Staging("s3://b/n", tmp_path).root
    assert Staging("s3://b/m", tmp_path).root == Staging("s3://b/m", tmp_path).root


def test_tries_are_counted_anew_while_something_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that breaks after every byte still comes through; one that brings nothing is given up."""
    pauses: list[float] = []
    monkeypatch.setattr("storage_initializer.retries.time.sleep", pauses.append)
    have = 0

    def one_more() -> None:
        nonlocal have
        have += 1
        if have < 5 * TRIES:
            raise Interrupted("cut")

    insist(one_more, "it", lambda: have)
    assert len(pauses) == 5 * TRIES - 1 and set(pauses) == {0.5}

    def nothing() -> None:
        raise Interrupted("refused")

    pauses.clear()
    with pytest.raises(FetchError, match=rf"it: refused \({TRIES} tries\)"):
        insist(nothing, "it", lambda: 0)
    assert pauses == [0.5, 1, 2, 4, 8]


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("gs://bucket/m", "interoperability endpoint speaks S3"),
        ("https://me.blob.core.windows.net/c/m", "Azure's storage is not fetched here"),
        ("hdfs://n/m", "hdfs:// is not fetched here"),
        ("oci://registry/m", "oci:// is not fetched here"),
        ("pvc://claim/m", "a claim is mounted"),
        ("ftp://host/m", "ftp:// is not known; known are file://, s3://"),
        ("https://host/folder/", "names no file"),
        ("hf://only-a-name", "is not hf://OWNER/NAME"),
        ("s3:///no-bucket", "names no bucket"),
        ("file://relative/path", "is no absolute path"),
    ],
)
def test_what_is_not_fetched_says_what_can_be_done(tmp_path: Path, uri: str, said: str) -> None:
    with pytest.raises(FetchError, match=said):
        fetch(uri, tmp_path / "models")


def test_what_lies_on_the_machine_is_linked(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "m" / "1").mkdir(parents=True)
    (source / "m" / "1" / "model.py").write_text("x")
    for _ in range(2):
        fetch(f"file://{source}", tmp_path / "models")
    assert (tmp_path / "models" / "m").is_symlink()
    assert (tmp_path / "models" / "m" / "1" / "model.py").read_text() == "x"
    fetch(str(source / "m" / "1" / "model.py"), tmp_path / "one")
    assert [one.name for one in (tmp_path / "one").iterdir()] == ["model.py"]


def test_a_local_archive_is_unpacked_and_stays_where_it_is(tmp_path: Path) -> None:
    import tarfile

    (tmp_path / "weights").write_text("x")
    with tarfile.open(tmp_path / "m.tgz", "w:gz") as made:
        made.add(tmp_path / "weights", "weights")
    fetch(f"file://{tmp_path}/m.tgz", tmp_path / "models")
    assert [one.name for one in (tmp_path / "models").iterdir()] == ["weights"]
    assert (tmp_path / "m.tgz").exists()


def test_what_is_not_there_or_empty_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FetchError, match="No such file"):
        fetch(f"file://{tmp_path}/none", tmp_path / "models")
    with pytest.raises(FetchError, match="is empty"):
        fetch(f"file://{tmp_path}/empty", tmp_path / "models")
