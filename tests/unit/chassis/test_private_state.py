"""What a core remembers in parts: commits carry what changed, and together they say all of it."""

from collections.abc import Mapping
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from chassis import Core
from chassis.private_state import LEAST_BYTES, PrivateState, asking, private_of
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.decision.v1 import decision_pb2

NAMES = st.sampled_from(["a", "b", "c", "d"])
CHANGES = st.dictionaries(NAMES, st.sampled_from([b"", b"1", b"2", b"x" * LEAST_BYTES]), min_size=1)


class Parted:
    """A core, as far as it remembers parts."""

    def __init__(self) -> None:
        self.changed: Mapping[str, bytes] = {}
        self.restored: Mapping[str, bytes] = {}

    def remember_parts(self) -> Mapping[str, bytes]:
        changed, self.changed = self.changed, {}
        return changed

    def restore_parts(self, parts: Mapping[str, bytes]) -> None:
        self.restored = dict(parts)


def committed(state: PrivateState, core: Any) -> decision_pb2.Commit | None:
    """The next commit, as it is read back; None where nothing is to be committed."""
    private = asking(core)(state)
    if private is None:
        return None
    commit = decision_pb2.Commit.FromString(encode_commit(CommitHead("s", 1, 1, 1), (), private))
    state.take(private)
    return commit


@given(st.lists(CHANGES, max_size=12))
def test_what_is_read_back_is_all_that_was_said(said: list[dict[str, bytes]]) -> None:
    state, core, commits, wanted = PrivateState(), Parted(), list[decision_pb2.Commit](), dict[str, bytes]()
    for changed in said:
        core.changed = changed
        commit = committed(state, core)
        assert commit is not None
        commits.append(commit)
        wanted = {name: content for name, content in {**wanted, **changed}.items() if content}
    last = max((n for n, commit in enumerate(commits) if private_of(commit).is_whole), default=0)
    successor = Parted()
    PrivateState.of(commits[last:]).give(cast("Core", successor))
    assert successor.restored == wanted


def test_a_large_state_is_not_written_again_for_a_small_change() -> None:
    state, core = PrivateState(), Parted()
    core.changed = {f"part-{number}": b"x" * 1_000 for number in range(1_000)}
    first = committed(state, core)
    assert first is not None and first.private_whole
    written = 0
    for number in range(4_000):
        core.changed = {f"part-{number % 1_000}": b"y" * 1_000}
        commit = committed(state, core)
        assert commit is not None
        written += commit.ByteSize()
    assert written < 3 * 4_000 * 1_000, "twice what changed, and what frames it"
    assert committed(state, core) is None, "nothing changed"


def test_a_state_of_one_text_stays_as_it_was() -> None:
    class Plain:
        def remember(self) -> bytes | None:
            return b"all"

        def restore(self, content: bytes) -> None:
            assert content == b"all"

    state = PrivateState()
    commit = committed(state, Plain())
    assert commit is not None and (commit.private_state, commit.private_whole, len(commit.private_parts)) == (
        b"all",
        False,
        0,
    )
    PrivateState.of([commit]).give(cast("Core", Plain()))
