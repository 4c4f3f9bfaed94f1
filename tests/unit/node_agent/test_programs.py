"""What stands in for images where nodes run processes."""

from pathlib import Path

import pytest

from kube.images import untagged
from node_agent.domain.programs import Program, ProgramError, command_of, filled, program_of, relocated
from node_agent.program_list import DEFAULTS, places, read_list
from node_agent.settings import AgentSettings
from node_agent.stand_in import StandIn

TRITON = Program("triton", ("*/tritonserver", "busybox"), entrypoint=("serve",), args=("--all",))


@pytest.mark.parametrize(
    ("image", "fits"),
    [
        ("nvcr.io/nvidia/tritonserver:23.05-py3", True),
        ("nvcr.io/nvidia/tritonserver@sha256:0123", True),
        ("registry:5000/nvidia/tritonserver", True),
        ("nvcr.io/nvidia/tritonserver-sdk:1", False),
        ("docker.io/busybox:1.36", True),
        ("quay.io/busybox:1.36", False),
        ("", False),
    ],
)
def test_a_pattern_fits_an_image_with_its_tag_or_without(image: str, fits: bool) -> None:
    assert (program_of([TRITON], image) is TRITON) is fits


def test_a_port_of_a_registry_is_no_tag() -> None:
    assert untagged("registry:5000/a/b") == "registry:5000/a/b"
    assert untagged("registry:5000/a/b:1@sha256:2") == "registry:5000/a/b"


def test_a_pattern_may_name_a_tag() -> None:
    old, new = (Program(tag, (f"*/model:{tag}*",), entrypoint=(tag,)) for tag in ("1", "2"))
    assert program_of([old, new], "x/model:2.5") is new
    assert program_of([old, new], "x/model") is None


def test_words_are_put_together_as_kubernetes_does_it() -> None:
    """``command`` stands for the image's entrypoint and drops its arguments; ``args`` stand for those alone."""
    assert command_of(TRITON, {}) == ["serve", "--all"]
    assert command_of(TRITON, {"args": ["-p", 1]}) == ["serve", "-p", "1"]
    assert command_of(TRITON, {"command": ["sh"], "args": ["-c", "x"]}) == ["sh", "-c", "x"]
    assert command_of(None, {"args": ["x"]}) == []


def test_names_of_places_are_replaced_and_other_braces_stay() -> None:
    assert filled("{a}/{b}{", {"a": "x"}) == "x/{b}{"


def test_paths_of_mounts_are_led_to_where_volumes_are() -> None:
    """Where a container has no view of its own. Paths that only begin alike stay."""
    words = ["--store=/mnt/models", "/mnt/models/a:/b", "/mnt/models2", "x/mnt/models", "/mnt/models/deep/m"]
    folders = {"/mnt/models": "/v", "/mnt/models/deep": "/d"}
    assert relocated(words, folders) == ["--store=/v", "/v/a:/b", "/mnt/models2", "x/mnt/models", "/d/m"]


def test_a_file_of_ones_own_goes_before_what_everybody_has(tmp_path: Path) -> None:
    file = tmp_path / "programs.yaml"
    file.write_text("programs: [{name: mine, images: ['*/tritonserver'], entrypoint: [x]}]\n")
    programs = read_list(file).programs
    found = program_of(programs, "nvcr.io/nvidia/tritonserver:1")
    assert found is not None and found.name == "mine"
    assert len(programs) == len(read_list(None).programs) + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("programs: [{images: [x]}]", "a program has a name"),
        ("programs: [{name: a}]", "program a: images is empty"),
        ("programs: [{name: a, images: x}]", "program a: images is no list"),
        ("programs: [{name: a, images: [x], comand: [y]}]", "program a: unknown keys comand"),
        ("programs: [{name: a, images: [x], env: [y]}]", "program a: env is no mapping"),
        ("programms: []", "unknown keys programms"),
        ("environments: {e: {}}", "an environment has requirements"),
        ("[", "programs.yaml"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "programs.yaml"
    file.write_text(text)
    with pytest.raises(ProgramError, match=said):
        read_list(file)


def test_what_everybody_has_runs_in_environments_that_can_be_installed() -> None:
    found = read_list(None)
    assert {one.environment for one in found.programs} - {""} <= found.environments.keys()
    known = places(Path("/e"), "x", "127.64.0.1", "127.0.0.1:7480")
    words = [word for one in found.programs for word in (*one.entrypoint, *one.path, *one.env.values())]
    assert [word for word in words if "{" in filled(word, known)] == [], DEFAULTS


@pytest.mark.parametrize("gateway", ["", "127.0.0.1:7480"])
def test_the_router_of_a_graph_is_told_where_services_are_asked(gateway: str) -> None:
    settings = AgentSettings("n", Path(), programs=read_list(None).programs, inference_gateway=gateway)
    pod = {"status": {"podIP": "127.64.0.1"}}
    told = StandIn(settings, lambda: pod).over({"PATH": "/bin"}, {"image": "tidegate/graph-router:0.1.0"})
    assert (told["INFERENCE_GATEWAY"], told["POD_IP"]) == (gateway, "127.64.0.1")
