"""Logs of real processes: from a time on, and each line behind its time."""

import time
from typing import Any

from kube import parse_time


async def told(bench: Any, uid: str, **wanted: Any) -> str:
    return b"".join([piece async for piece in bench.told(uid, **wanted)]).decode()


def stamped(text: str) -> list[tuple[int, str]]:
    """The times, in milliseconds since the epoch, and the lines."""
    pairs = [line.split(" ", 1) for line in text.splitlines()]
    return [(parse_time(moment), line) for moment, line in pairs]


async def test_lines_have_the_time_at_which_they_were_written(bench: Any) -> None:
    begin = time.time() * 1000
    script = "echo one; sleep 0.4; echo two; printf 'thr'; sleep 0.4; echo ee"
    await bench.run(bench.pod("slow", "sh", "-c", script), "Succeeded")
    (first, one), (second, two), (third, three) = stamped(await told(bench, "uid-slow", timestamps=True))
    assert (one, two, three) == ("one", "two", "three")
    assert begin - 1 <= first and first + 350 <= second <= third <= second + 100
    assert await told(bench, "uid-slow", since_ms=second) == "two\nthree\n"
    assert await told(bench, "uid-slow", since_ms=second, tail=1) == "three\n"
    assert await told(bench, "uid-slow", since_ms=third + 5_000) == ""
    assert await told(bench, "uid-slow") == "one\ntwo\nthree\n"


async def test_who_follows_from_a_time_on_is_told_what_comes_with_its_times(bench: Any) -> None:
    script = "echo old; while ! test -e $HOME/go; do sleep 0.02; done; for i in 1 2 3; do echo new-$i; sleep 0.1; done"
    await bench.run(bench.pod("follow", "sh", "-c", script), "Running")
    await bench.until_log("uid-follow", "old")
    now = time.time_ns() // 1_000_000 + 20
    (bench.settings.data_dir / "pods/uid-follow/home/go").touch()
    lines = stamped(await told(bench, "uid-follow", since_ms=now, follow=True, timestamps=True))
    assert [line for _, line in lines][-2:] == ["new-2", "new-3"]
    moments = [moment for moment, _ in lines]
    assert moments == sorted(moments) and moments[-1] - moments[-2] >= 80


async def test_a_fast_writer_is_not_held_up_and_what_was_rotated_keeps_its_times(bench_with: Any) -> None:
    async with bench_with(log_bytes=1 << 20, log_files=4) as bench:
        begin = time.time() * 1000
        script = "seq 1 200000; sleep 0.3; seq 200001 400000; sleep 0.3; echo last"
        await bench.run(bench.pod("fast", "sh", "-c", script), "Succeeded")
        folder = bench.settings.data_dir / "logs/default_fast_uid-fast"
        logs = [file for file in folder.iterdir() if not file.name.endswith(".times")]
        assert len(logs) >= 2
        lines = stamped(await told(bench, "uid-fast", timestamps=True))
        assert lines[-1][1] == "last"
        moments = [moment for moment, _ in lines]
        assert moments == sorted(moments) and begin - 1 <= moments[0]
        before_last = [moment for moment, line in lines if line == "400000"]
        assert moments[-1] - before_last[0] >= 250
        assert sum(file.stat().st_size for file in folder.glob("*.times")) < 64 << 10


async def test_what_an_attempt_before_wrote_keeps_its_times(bench: Any) -> None:
    script = "if test -e $HOME/again; then echo now; sleep 60; fi; touch $HOME/again; echo before; exit 1"
    bench.assign(bench.pod("again", "sh", "-c", script, restartPolicy="Always"))
    await bench.until_log("uid-again", "now")
    [(before, word)] = stamped(await told(bench, "uid-again", timestamps=True, previous=True))
    [(now, _)] = stamped(await told(bench, "uid-again", timestamps=True))
    assert word == "before" and before < now
    assert await told(bench, "uid-again", previous=True, since_ms=now) == ""
