"""Images on a node that runs processes: what stands in for them, and what is said where nothing does."""

from pathlib import Path
from typing import Any

from node_agent.domain.programs import Program


def serving(folder: Path, **fields: Any) -> dict[str, Any]:
    """The settings of an agent with one program."""
    program = Program("teller", ("*/teller",), **fields)
    return {"programs": (program,), "environments": folder / "environments"}


def waiting(bench: Any, uid: str) -> dict[str, Any]:
    states = [one["state"] for one in bench.upstream.statuses.get(uid, {}).get("containerStatuses", ())]
    return next((state["waiting"] for state in states if "waiting" in state), {})


async def test_a_program_runs_in_place_of_an_image(bench_with: Any, open_folder: Path) -> None:
    says = 'echo "$GREETING $POD_IP $*"'
    settings = serving(
        open_folder, entrypoint=("sh", "-c", says, "{python}"), env={"POD_IP": "{pod_ip}", "GREETING": "hi"}
    )
    async with bench_with(**settings) as bench:
        container = {"image": "registry.test/teller:1", "args": ["a", "{b}"], "command": None}
        status = await bench.run(bench.pod("t", container=container), "Succeeded")
        assert await bench.log("uid-t") == "hi 127.20.0.1 a {b}\n"
        conditions = {one["type"]: one for one in status["conditions"]}
        assert "program teller of this machine runs in place of" in conditions["tidegate.dev/ImagesInForce"]["message"]


async def test_what_a_container_says_of_itself_goes_before_what_its_image_brings(
    bench_with: Any, open_folder: Path
) -> None:
    (open_folder / "tools").mkdir()
    tool = open_folder / "tools" / "tell"
    tool.write_text("#!/bin/sh\necho $A $B $*\n")
    for made in (tool, tool.parent):
        made.chmod(0o755)
    settings = serving(open_folder, entrypoint=("false",), env={"A": "image", "B": "image"}, path=(str(tool.parent),))
    async with bench_with(**settings) as bench:
        container = {"image": "r.test/teller", "env": [{"name": "A", "value": "own"}]}
        await bench.run(bench.pod("own", "tell", "x", container=container), "Succeeded")
        assert await bench.log("uid-own") == "own image x\n"


async def test_a_program_that_is_not_installed_is_waited_for_and_named(bench_with: Any, open_folder: Path) -> None:
    settings = serving(open_folder, entrypoint=("echo",), args=("here",), environment="teller")
    async with bench_with(**settings) as bench:
        bench.assign(bench.pod("soon", container={"image": "r.test/teller", "command": None}))
        await bench.upstream.until(lambda: waiting(bench, "uid-soon").get("reason") == "ProgramNotInstalled")
        assert "tidegate install teller" in waiting(bench, "uid-soon")["message"]
        (open_folder / "environments" / "teller").mkdir(parents=True)
        (open_folder / "environments" / "teller" / "installed.txt").touch()
        await bench.upstream.phase("uid-soon", "Succeeded")


async def test_an_image_that_nothing_stands_in_for_says_what_can_be_done(bench_with: Any, open_folder: Path) -> None:
    async with bench_with(**serving(open_folder, entrypoint=("echo",))) as bench:
        status = await bench.run(bench.pod("none", container={"image": "r.test/other:1", "command": None}), "Failed")
        assert status["reason"] == "ImageNotRunnable"
        assert "node_agent.programs" in status["message"] and "r.test/other:1" in status["message"]


async def test_arguments_of_an_image_that_name_a_mount_lead_to_the_volume_where_nothing_is_mounted(
    bench_with: Any, open_folder: Path
) -> None:
    settings = serving(open_folder, entrypoint=("sh", "-c", "echo it > ${0#--into=}/file && cat ${0#--into=}/file"))
    async with bench_with(**settings, isolate=False) as bench:
        mount = {"name": "v", "mountPath": "/mnt/models"}
        container = {"image": "r.test/teller", "args": ["--into=/mnt/models"], "command": None, "volumeMounts": [mount]}
        await bench.run(bench.pod("p", container=container, volumes=[{"name": "v", "emptyDir": {}}]), "Succeeded")
        assert await bench.log("uid-p") == "it\n"
