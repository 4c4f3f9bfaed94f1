"""Output that goes on: merged logs, and tables that grow."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from kube import Manifest, parse_time
from tidegate_cli.consumption import amount
from tidegate_cli.log_streams import merged, prefixed
from tidegate_cli.running_table import RunningTable
from tidegate_cli.terminal import _CELL

NOW = parse_time("2026-01-01T00:01:00Z")


@given(pieces=st.lists(st.text("ab\n", max_size=6).map(str.encode), max_size=8))
def test_lines_are_whole_however_the_pieces_were_cut(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    lines = whole.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    assert b"".join(prefixed(iter(pieces), b"> ")) == b"".join(b"> " + line + b"\n" for line in lines)


def test_sources_are_read_at_once_and_one_that_fails_does_not_end_the_others() -> None:
    def good() -> Iterator[bytes]:
        yield b"a\n"
        yield b"b"

    def bad() -> Iterator[bytes]:
        yield b"c\n"
        raise OSError("gone")

    errors: list[Exception] = []
    lines = list(merged({"[x] ": good, "[y] ": bad}, errors.append))
    assert [line for line in lines if line.startswith(b"[x]")] == [b"[x] a\n", b"[x] b\n"]
    assert [line for line in lines if line.startswith(b"[y]")] == [b"[y] c\n"]
    assert [str(error) for error in errors] == ["gone"]
    assert list(merged({}, errors.append)) == []


def pod(name: str, phase: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "labels": {"b": "2", "a": "1"}},
        "status": {"phase": phase},
    }


def test_later_rows_stand_under_the_titles_and_only_widen_the_columns() -> None:
    table = RunningTable("Pod", wide=False, namespaces=True, labels=True)
    begun = table.begin([pod("a", "Pending")], NOW)
    later = table.row(pod("b", "Running"), NOW)
    assert begun[0].index("STATUS") == begun[1].index("Pending") == later.index("Running")
    longer = table.row(pod("a-much-longer-name", "Running"), NOW)
    assert longer.index("Running") > later.index("Running")
    assert longer.split() == ["team", "a-much-longer-name", "0/0", "Running", "0", "<unknown>", "a=1,b=2"]


def test_states_are_coloured_only_where_they_fill_a_cell() -> None:
    painted = [found[1] for found in _CELL.finditer("NAME      STATUS\nRunning-1   Running\nFailed x  Pending   3s\n")]
    assert painted == ["Running", "Pending"]


def test_amounts_are_told_in_few_digits() -> None:
    assert [amount("cpu", 1500), amount("cpu", 2000), amount("nvidia.com/gpu", 8)] == ["1500m", "2", "8"]
    assert [amount("memory", value) for value in (0, 512, 1 << 30, (1 << 30) * 9 // 2, 1_500_000_000)] == [
        "0", "512", "1Gi", "4.5Gi", "1.4Gi",
    ]  # fmt: skip
