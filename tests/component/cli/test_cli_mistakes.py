"""What a user does wrong ends in a sentence and the right exit code, never in a stack trace."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from tidegate_cli.command_table import COMMANDS


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["get", "pdos"], "there is no kind 'pdos'; did you mean pods?"),
        (["get", "xyzzy"], "`tidegate api-resources` lists the kinds"),
        (["get"], "say what you mean"),
        (["get", ","], "names no kind"),
        (["get", "pod/a", "b"], "'b' is to be KIND/NAME"),
        (["get", "pods", "-l", "a in b"], "'a in b' is no label selector"),
        (["get", "pods", "--field-selector", "x"], "'x' is no field selector"),
        (["get", "pods", "a", "-l", "app=web"], "give names or a selector, not both"),
        (["get", "pods", "a", "-A"], "give -n NAMESPACE instead of -A"),
        (["get", "pods,jobs", "-w"], "watch one kind at a time"),
        (["get", "pods", "--sort-by", "{}"], "'{}' is no path to a field"),
        (["get", "pods", "-o", "toml"], "'toml' is not one of"),
        (["get", "pods", "-o", "go-template={{.items}}"], "there is no go-template here: take jsonpath="),
        (["get", "pods", "-o", "jsonpath"], "write jsonpath=TEMPLATE, such as jsonpath={.items[*].metadata.name}"),
        (["get", "pods", "-o", "jsonpath={.items[}"], "'.items[' cannot be read from '[' on"),
        (["get", "pods", "-o", "jsonpath={range .items[*]}x"], "a {range} has no {end}"),
        (["get", "pods", "-o", "jsonpath={range .items[*]}{.a[}{end}"], "cannot be read"),
        (["get", "pods", "-o", "jsonpath={.a}{end}"], "an {end} without a {range}"),
        (["get", "pods", "-o", "jsonpath=x}"], "has no other"),
        (["get", "pods", "-o", "custom-columns=NAME"], "'NAME' is no column; write TITLE:.path.to.field"),
        (["patch", "job/x"], "give the patch: -p PATCH or --patch-file FILE"),
        (["patch", "job/x", "-p", "[]"], "a merge patch is a mapping of fields"),
        (["patch", "job/x", "--type", "json", "-p", "{}"], "a JSON patch is a list of operations"),
        (["patch", "job/x", "-p", "{"], "the patch cannot be read"),
        (["patch", "-p", "{}"], "KIND/NAME"),
        (["sttus"], "did you mean `tidegate status`?"),
        (["cordon", "n1"], "there is no command 'cordon' here: apply the node with `spec.unschedulable: true`"),
        (["edit", "job/ring"], "`tidegate get KIND/NAME -o yaml > FILE`, change it, and `tidegate apply -f FILE`"),
        (["create", "namespace", "x"], "create takes files: -f FILE, -f FOLDER, or -f - for standard input"),
        (["apply"], "say which files"),
        (["wait", "job/x", "--for=soon"], "'soon' is nothing to wait for"),
        (["wait", "job/x", "--for=delete", "--timeout", "long"], "'long' is no length of time"),
        (["wait", "jobs", "--for=delete"], "which jobs?"),
        (["suspend", "jobs"], "which jobs?"),
        (["scale", "job/x"], "--replicas"),
        (["logs"], "name a pod"),
        (["top", "queues"], "say nodes or pods"),
        (["events", "--for", "x"], "there is no kind 'x'"),
    ],
)
def test_wrong_usage_ends_with_2_before_anybody_is_asked(
    tidegate: Any, server: Any, words: list[str], sentence: str
) -> None:
    ended = tidegate(*words)
    assert (ended.code, dict(server.asked)) == (2, {})
    assert sentence in ended.err


def test_a_server_that_does_not_answer_ends_with_3(tidegate: Any) -> None:
    ended = tidegate("get", "pods", "--server", "127.0.0.1:1")
    assert ended.code == 3
    assert ended.err.startswith("Error: no Tidegate answers at 127.0.0.1:1")
    assert "`tidegate up` starts it" in ended.err
    assert tidegate("--server", "127.0.0.1:1", "version").code == 3
    assert tidegate("version", "--client").code == 0
    assert tidegate("get", "pods", "--server", "nowhere").code == 3


def test_a_part_behind_the_server_that_does_not_answer_ends_with_3_and_its_words(tidegate: Any, server: Any) -> None:
    server.failures["Status"] = (grpc.StatusCode.UNAVAILABLE, "the cluster gateway does not answer")
    ended = tidegate("status")
    assert (ended.code, ended.err) == (3, "Error: the cluster gateway does not answer\n")


def test_a_wrong_token_ends_with_1(tidegate: Any, server: Any) -> None:
    assert tidegate("get", "pods", "--token", "wrong").err == "Error: the token is unknown\n"
    assert tidegate("get", "pods", "--token", "w\u00e4r").code == 1
    server.failures["Apply"] = (grpc.StatusCode.PERMISSION_DENIED, "user ada may not write in namespace x")
    assert tidegate("get", "pods").code == 0


def test_without_a_server_the_message_says_how_to_start_one(tidegate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_SERVER")
    ended = tidegate("get", "pods")
    assert ended.code == 3
    assert "start one with `tidegate up`" in ended.err


def test_the_data_folder_of_a_parent_folder_says_where_and_who(
    tidegate: Any, server: Any, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEGATE_SERVER")
    monkeypatch.delenv("TIDEGATE_TOKEN")
    folder = tmp_path / ".tidegate"
    folder.mkdir()
    (folder / "endpoint.json").write_text(json.dumps({"server": server.address, "token_file": "users.yaml", "pid": 1}))
    (folder / "users.yaml").write_text(f"- {{name: admin, token: {token}}}\n- {{name: eve, token: other}}\n")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert tidegate("whoami").code == 0
    assert tidegate("whoami", "--as", "eve").err == "Error: the token is unknown\n"
    assert "has no user 'bob'; it has admin, eve" in tidegate("whoami", "--as", "bob").err
    monkeypatch.chdir("/")
    assert tidegate("whoami", "--data-dir", str(folder)).code == 0
    monkeypatch.setenv("TIDEGATE_DATA_DIR", str(folder))
    assert tidegate("whoami").code == 0


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"server": 5}'])
def test_a_spoilt_endpoint_file_is_told(
    tidegate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.delenv("TIDEGATE_SERVER")
    (tmp_path / ".tidegate").mkdir()
    (tmp_path / ".tidegate" / "endpoint.json").write_text(content)
    assert tidegate("get", "pods").code == 3


def _environment(server: Any, token: str) -> dict[str, str]:
    return {**os.environ, "TIDEGATE_SERVER": server.address, "TIDEGATE_TOKEN": token}


def test_a_reader_that_has_seen_enough_is_no_error(server: Any, token: str, pod: Any) -> None:
    server.page_size = 500
    for number in range(500):
        server.put(pod(f"pod-{number:04}"))
    process = subprocess.run(
        f"{sys.executable} -m tidegate_cli.main get pods -o yaml | head -1",
        shell=True,
        capture_output=True,
        text=True,
        env=_environment(server, token),
        timeout=60,
    )
    assert (process.stdout, process.stderr) == ("apiVersion: v1\n", "")


def test_ctrl_c_ends_a_watch_without_a_word(server: Any, token: str, pod: Any) -> None:
    server.put(pod("a"))
    command = [sys.executable, "-m", "tidegate_cli.main", "get", "pods", "-w", "-o", "name"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment(server, token)
    )
    with process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "pod/a\n"
            process.send_signal(2)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, err.strip()) == (130, "", "")


def test_help_is_quick_and_loads_neither_grpc_nor_commands() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "tidegate_cli.main", "--help"]
    for _ in range(3):  # what else this machine does may hold up one of them
        began = time.monotonic()
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if (taken := time.monotonic() - began) < 3.0:
            break
    assert taken < 3.0
    assert "Training jobs" in process.stdout
    loaded = {line.rpartition("|")[2].strip() for line in process.stderr.splitlines()}
    assert not {"grpc", "google.protobuf", "yaml", "kube", "tidegate_cli.commands"} & loaded


def test_help_of_each_command_teaches_with_examples_and_loads_no_grpc(tidegate: Any) -> None:
    code = (
        "import sys; from tidegate_cli.command_table import COMMANDS\n"
        "for entry in COMMANDS:\n"
        "    if entry.name not in ('up', 'down', 'sim'): entry.load()\n"
        "assert 'grpc' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    for entry in COMMANDS:
        ended = tidegate(entry.name, "--help")
        assert ended.code == 0
        assert f"Usage: tidegate {entry.name}" in ended.out


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_prints_a_script(tidegate: Any, shell: str) -> None:
    ended = tidegate("completion", shell)
    assert ended.code == 0
    assert "_TIDEGATE_COMPLETE" in ended.out


def test_the_tab_key_knows_kinds_and_names(server: Any, token: str, pod: Any) -> None:
    server.put(pod("web-1"))

    def offered(words: str, position: int, **changes: str) -> list[str]:
        settings = {"_TIDEGATE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        process = subprocess.run(
            [sys.executable, "-c", "from tidegate_cli.main import run; run()"],
            capture_output=True,
            text=True,
            env={**_environment(server, token), **settings, **changes},
            timeout=60,
        )
        return [line.partition(",")[2] for line in process.stdout.split()]

    assert offered("tidegate get podg", 2) == ["podgroups"]
    assert offered("tidegate get pod/", 2) == ["pod/web-1"]
    assert offered("tidegate get pods w", 3) == ["web-1"]
    assert offered("tidegate get pods w", 3, TIDEGATE_SERVER="127.0.0.1:1") == []


def test_api_resources_lists_the_names_that_kinds_go_by(tidegate: Any) -> None:
    out = tidegate("api-resources").out
    assert out.splitlines()[0].split() == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["queues", "q", "scheduling.volcano.sh/v1beta1", "false", "Queue"] in [
        line.split() for line in out.splitlines()
    ]
    assert "pods" not in tidegate("api-resources", "--namespaced", "false", "-o", "name").out.split()
