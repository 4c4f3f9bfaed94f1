"""What each of the v1 kinds gives to its pods so that they find each other."""

import json
from collections.abc import Callable
from typing import Any

FIELDS = {"TFJob": "tf", "PyTorchJob": "pytorch", "XGBoostJob": "xgb", "PaddleJob": "paddle", "JAXJob": "jax"}
CONTAINERS = {
    "TFJob": "tensorflow",
    "PyTorchJob": "pytorch",
    "XGBoostJob": "xgboost",
    "PaddleJob": "paddle",
    "JAXJob": "jax",
}


def job(kind: str, replicas: dict[str, int], container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A job ``j`` with so many replicas of each type."""
    one = {"name": CONTAINERS[kind], "image": "busybox", **(container or {})}
    template = {"spec": {"containers": [one, {"name": "side", "image": "busybox"}]}}
    specs = {word: {"replicas": count, "template": template} for word, count in replicas.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "j"},
        "spec": {f"{FIELDS[kind]}ReplicaSpecs": specs, **spec},
    }


def test_torch_ranks_begin_at_the_master(cluster: Any) -> None:
    cluster.apply(job("PyTorchJob", {"Master": 1, "Worker": 2}, nprocPerNode="4"))
    assert cluster.env("j-master-0") == {
        "PYTHONUNBUFFERED": "1",
        "MASTER_PORT": "23456",
        "PET_MASTER_PORT": "23456",
        "MASTER_ADDR": "j-master-0",
        "PET_MASTER_ADDR": "j-master-0",
        "WORLD_SIZE": "12",
        "RANK": "0",
        "PET_NODE_RANK": "0",
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "4",
    }
    assert cluster.env("j-worker-1")["RANK"] == "2"


def test_torch_gives_its_environment_to_every_container(cluster: Any) -> None:
    cluster.apply(job("PyTorchJob", {"Master": 1}))
    assert cluster.env("j-master-0", container=1)["WORLD_SIZE"] == "1"


def test_torch_without_a_master_says_only_how_many_nodes_there_are(cluster: Any) -> None:
    cluster.apply(job("PyTorchJob", {"Worker": 2}))
    assert cluster.env("j-worker-0") == {"PYTHONUNBUFFERED": "1", "PET_NNODES": "2", "PET_NPROC_PER_NODE": "auto"}


def test_an_elastic_job_gets_a_range_and_a_rendezvous(cluster: Any) -> None:
    conf = [{"key": "timeout", "value": "900"}, {"key": "k", "value": "v"}]
    policy = {"minReplicas": 1, "maxReplicas": 3, "rdzvConf": conf, "maxRestarts": 0, "standalone": True}
    cluster.apply(job("PyTorchJob", {"Worker": 3}, elasticPolicy=policy))
    env = cluster.env("j-worker-2")
    assert env["PET_NNODES"] == "1:3"
    assert env["PET_RDZV_ENDPOINT"] == "j-worker-0:23456"
    assert env["PET_RDZV_BACKEND"] == "c10d"
    assert env["PET_RDZV_CONF"] == "timeout=900,k=v"
    assert env["PET_MAX_RESTARTS"] == "0"
    assert env["PET_STANDALONE"] == ""


def test_the_port_of_the_container_wins_over_the_default(cluster: Any) -> None:
    ports = [{"name": "pytorchjob-port", "containerPort": 1234}]
    cluster.apply(job("PyTorchJob", {"Master": 1, "Worker": 1}, {"ports": ports}))
    assert cluster.env("j-worker-0")["MASTER_PORT"] == "1234"
    assert cluster.get("Service/j-master-0").spec["ports"][0]["port"] == 1234


def test_an_injected_variable_takes_the_place_of_the_users(cluster: Any) -> None:
    env = [{"name": "RANK", "value": "7"}, {"name": "MINE", "value": "x"}]
    cluster.apply(job("PyTorchJob", {"Master": 1}, {"env": env}))
    names = [entry["name"] for entry in cluster.get("Pod/j-master-0").spec["containers"][0]["env"]]
    assert names.count("RANK") == 1
    assert cluster.env("j-master-0")["RANK"] == "0"
    assert cluster.env("j-master-0")["MINE"] == "x"


def tf_config(cluster: Any, pod: str) -> Any:
    return json.loads(cluster.env(pod)["TF_CONFIG"])


def test_tensorflow_gets_the_cluster_and_its_own_place(cluster: Any) -> None:
    cluster.apply(job("TFJob", {"PS": 1, "Worker": 2, "Evaluator": 1}))
    assert tf_config(cluster, "j-worker-1") == {
        "cluster": {
            "ps": ["j-ps-0.default.svc:2222"],
            "worker": ["j-worker-0.default.svc:2222", "j-worker-1.default.svc:2222"],
        },
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }
    assert tf_config(cluster, "j-evaluator-0")["task"] == {"type": "evaluator", "index": 0}


def test_tensorflow_config_is_for_its_own_container_only(cluster: Any) -> None:
    cluster.apply(job("TFJob", {"Worker": 2}))
    assert cluster.env("j-worker-0", container=1) == {}


def test_a_tensorflow_job_of_one_pod_is_not_distributed(cluster: Any) -> None:
    cluster.apply(job("TFJob", {"Worker": 1}))
    assert cluster.env("j-worker-0") == {}


def test_dynamic_tensorflow_workers_see_the_servers_and_themselves(cluster: Any) -> None:
    cluster.apply(job("TFJob", {"PS": 2, "Worker": 2}, enableDynamicWorker=True))
    servers = ["j-ps-0.default.svc:2222", "j-ps-1.default.svc:2222"]
    seen = {"ps": servers, "worker": {"1": "j-worker-1.default.svc:2222"}}
    assert tf_config(cluster, "j-worker-1") == {
        "cluster": seen,
        "sparseCluster": seen,
        "task": {"type": "worker", "index": 1},
    }
    assert tf_config(cluster, "j-ps-1")["cluster"] == {"ps": ["j-ps-1.default.svc:2222"]}


def test_jax_processes_know_their_coordinator_and_number(cluster: Any) -> None:
    cluster.apply(job("JAXJob", {"Worker": 2}))
    assert cluster.env("j-worker-1") == {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_PORT": "6666",
        "COORDINATOR_ADDRESS": "j-worker-0",
        "NUM_PROCESSES": "2",
        "PROCESS_ID": "1",
    }


def test_xgboost_workers_are_ranked_behind_the_master(cluster: Any) -> None:
    cluster.apply(job("XGBoostJob", {"Master": 1, "Worker": 2}))
    assert cluster.env("j-worker-1") == {
        "PYTHONUNBUFFERED": "1",
        "MASTER_PORT": "9999",
        "MASTER_ADDR": "j-master-0",
        "WORLD_SIZE": "3",
        "RANK": "2",
        "WORKER_PORT": "9999",
        "WORKER_ADDRS": "j-worker-0,j-worker-1",
    }


def test_the_paddle_pod_of_rank_zero_listens_on_its_own_address(cluster: Any) -> None:
    cluster.apply(job("PaddleJob", {"Master": 1, "Worker": 1}))
    master = cluster.env("j-master-0")
    assert master["PADDLE_MASTER"] == "$(POD_IP_DUMMY):36543"
    assert master["PADDLE_SERVER_NUM"] == "1"
    assert cluster.env("j-worker-0")["PADDLE_MASTER"] == "j-master-0:36543"
    assert cluster.env("j-worker-0")["PADDLE_TRAINER_NUM"] == "1"


def test_paddle_without_a_master_meets_at_the_first_worker(cluster: Any) -> None:
    cluster.apply(job("PaddleJob", {"Worker": 2}))
    assert cluster.env("j-worker-0")["PADDLE_MASTER"] == "$(POD_IP_DUMMY):36543"
    assert cluster.env("j-worker-1")["PADDLE_MASTER"] == "j-worker-0:36543"
    assert "PADDLE_TRAINER_NUM" not in cluster.env("j-worker-1")


def test_pods_and_services_carry_the_labels_by_which_they_are_found(cluster: Any) -> None:
    cluster.apply(job("PyTorchJob", {"Master": 1, "Worker": 1}))
    master = cluster.get("Pod/j-master-0")
    assert master.labels == {
        "training.kubeflow.org/job-name": "j",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": "master",
        "training.kubeflow.org/replica-index": "0",
        "training.kubeflow.org/job-role": "master",
    }
    service = cluster.get("Service/j-master-0")
    assert service.spec["selector"] == master.labels
    assert service.spec["clusterIP"] == "None"
    assert "training.kubeflow.org/job-role" not in cluster.get("Pod/j-worker-0").labels


def test_exit_code_is_never_left_to_the_node(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    manifest = job("TFJob", {"Worker": 2})
    manifest["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    cluster.apply(manifest)
    assert cluster.get("Pod/j-worker-0").spec["restartPolicy"] == "Never"
