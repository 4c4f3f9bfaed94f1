"""The examples: every manifest is let in as it is, and every program does what it says."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import node_agent.runtime
from admission.domain.admit import admit
from kube import Store, from_manifest
from tidegate_cli.apply_order import in_order
from tidegate_cli.demo.cast import CAST
from tidegate_cli.documents import read_documents

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PROGRAMS = EXAMPLES / "programs"
MANIFESTS = sorted(EXAMPLES.glob("*.yaml"))
RESOLVER = Path(node_agent.runtime.__file__).with_name("resolver")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def cluster() -> Store:
    """What a new cluster begins with, as far as the examples name it."""
    store = Store()
    for kind, version, name in (
        ("Namespace", "v1", "default"),
        ("Queue", "scheduling.volcano.sh/v1beta1", "root"),
        ("Queue", "scheduling.volcano.sh/v1beta1", "default"),
    ):
        manifest: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {}}
        store.put(from_manifest(manifest | {"status": {"state": "Open"}}, uid=name))
    return store


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a program as a pod would be: names resolve by a hosts file, every name has an address of its own."""
    hosts = tmp_path / "hosts"
    started: list[subprocess.Popen[str]] = []

    def start(program: str, names: list[str], **variables: str) -> "subprocess.Popen[str]":
        # A range that no cluster on this machine gives to its pods, another one for each run of the tests.
        net = f"127.{130 + os.getpid() // 250 % 100}.{os.getpid() % 250}"
        hosts.write_text("".join(f"{net}.{number}\t{name}\n" for number, name in enumerate(names, 1)))
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", (PROGRAMS / program).read_text()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PYTHONPATH": str(RESOLVER), "TIDEGATE_HOSTS": str(hosts), "PAUSE_SECONDS": "0.01", **variables},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def last_line(process: "subprocess.Popen[str]") -> str:
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    return output.strip().splitlines()[-1]


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_every_manifest_is_let_in_as_it_is_and_without_a_warning(file: Path, cluster: Store) -> None:
    for document in in_order(read_documents([str(file)])):
        admitted = admit(document.manifest, None, cluster)
        assert admitted.warnings == (), document.place
        cluster.put(from_manifest(admitted.manifest, uid=document.place))


def test_the_folder_as_a_whole_can_be_applied(cluster: Store) -> None:
    """No two manifests have the same name, and nothing else in the folder is taken for one."""
    documents = in_order(read_documents([str(EXAMPLES)]))
    for document in documents:
        admitted = admit(document.manifest, None, cluster)
        cluster.put(from_manifest(admitted.manifest, uid=document.place))
    assert len(cluster.objects) == len(documents) + 3


def test_every_manifest_carries_its_program_as_it_is() -> None:
    spec = importlib.util.spec_from_file_location("embed", EXAMPLES / "embed.py")
    assert spec is not None and spec.loader is not None
    embed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(embed)
    assert [file.name for file in MANIFESTS if embed.embedded(file.read_text(), PROGRAMS) != file.read_text()] == []


def test_every_manifest_is_described_in_the_readme() -> None:
    text = (EXAMPLES / "README.md").read_text()
    assert [file.name for file in MANIFESTS if f"`{file.name}`" not in text] == []


def test_the_demos_jobs_have_as_many_pods_as_it_waits_for() -> None:
    for act in CAST:
        job = read_documents([str(EXAMPLES / act.file)])[-1].manifest
        assert (job["kind"], job["metadata"]["name"]) == (act.key.kind.partition(".")[0], act.name)
        parts = job["spec"].get("tasks") or job["spec"]["pytorchReplicaSpecs"].values()
        assert sum(part["replicas"] for part in parts) == act.pods


def ring(start: Start, peers: list[str], place: int, **more: str) -> "subprocess.Popen[str]":
    return start(
        "ring_allreduce.py",
        peers,
        HOSTNAME=peers[place].partition(".")[0],
        VC_TASK_INDEX=str(max(0, place - 1)),
        VC_MASTER_HOSTS=peers[0],
        VC_WORKER_HOSTS=",".join(peers[1:]),
        **{"ROUNDS": "3", **more},
    )


def test_every_rank_of_the_ring_checks_the_sum(start: Start) -> None:
    peers = ["r-master-0.r", *(f"r-worker-{number}.r" for number in range(3))]
    ranks = [ring(start, peers, place) for place in range(4)]
    assert [last_line(rank) for rank in ranks] == ["checked: sum 6.0 over 4 ranks, 3 rounds of 16384 values"] * 4


def test_a_rank_that_dies_ends_the_ring(start: Start) -> None:
    """Nobody waits for ever, and nobody says that it checked a sum."""
    peers = ["r-master-0.r", "r-worker-0.r", "r-worker-1.r"]
    ranks = [ring(start, peers, place, ROUNDS="1000000") for place in range(3)]
    assert ranks[1].stdout is not None
    while "round 2" not in ranks[1].stdout.readline():
        pass
    ranks[1].send_signal(signal.SIGKILL)
    for rank in (ranks[0], ranks[2]):
        output = rank.communicate(timeout=60)[0]
        assert rank.returncode != 0
        assert "checked" not in output


@pytest.mark.parametrize("names", [("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
                                   ("PET_NODE_RANK", "PET_NNODES", "PET_MASTER_ADDR", "PET_MASTER_PORT")],
                         ids=["PyTorchJob", "torchrun"])  # fmt: skip
def test_ranks_meet_by_the_injected_names_and_learn_the_same(start: Start, names: tuple[str, ...]) -> None:
    ranks = [
        start("rendezvous.py", ["p-master-0"], STEPS="40", **dict(zip(names, (str(rank), "3", "p-master-0", "23456"), strict=True)))
        for rank in range(3)
    ]  # fmt: skip
    lines = {last_line(rank) for rank in ranks}
    assert len(lines) == 1
    assert lines.pop().startswith("checked: weight 3.000 on 3 ranks after 40 steps, by ")


def test_training_goes_on_behind_the_step_that_it_was_killed_in(start: Start, tmp_path: Path) -> None:
    variables = {"HOSTNAME": "w", "VC_TASK_INDEX": "1", "STEPS": "30", "TIDEGATE_VOLUME_CHECKPOINTS": str(tmp_path)}
    first = start("training_steps.py", [], **(variables | {"PAUSE_SECONDS": "60"}))
    assert first.stdout is not None
    while "step 1 of" not in first.stdout.readline():
        pass
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = start("training_steps.py", [], **variables)
    assert last_line(second) == "checked: 30 steps in life 2, went on with step 2"


def test_trainers_find_the_parameter_server_by_tf_config(start: Start) -> None:
    cluster = {"chief": ["t-chief-0:2222"], "ps": ["t-ps-0:2222"], "worker": ["t-worker-0:2222"]}

    def pod(role: str) -> "subprocess.Popen[str]":
        config = json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})
        return start("parameter_server.py", ["t-ps-0", "t-chief-0", "t-worker-0"], TF_CONFIG=config)

    server, trainers = pod("ps"), [pod("chief"), pod("worker")]
    assert [last_line(one) for one in trainers] == [
        "checked: weight 3.000 from 2 trainers and one parameter server"
    ] * 2
    assert server.poll() is None


def test_the_launcher_gives_work_to_the_hosts_of_its_hostfile(start: Start, tmp_path: Path) -> None:
    hosts = ["p-worker-0.p.default.svc", "p-worker-1.p.default.svc"]
    names = [*(host.partition(".")[0] for host in hosts)]
    (tmp_path / "hostfile").write_text("".join(f"{host} slots=1\n" for host in hosts))
    known = [f"{name}\t{host}" for name, host in zip(names, hosts, strict=True)]
    for name in names:
        start("launched_work.py", known, HOSTNAME=name, K_MPI_JOB_ROLE="worker")
    folder = {"TIDEGATE_VOLUME_MPI_JOB_CONFIG": str(tmp_path)}
    launcher = start("launched_work.py", known, HOSTNAME="p-launcher", K_MPI_JOB_ROLE="launcher", **folder)
    assert last_line(launcher) == "checked: pi is 3.141592654, computed by 2 workers"
