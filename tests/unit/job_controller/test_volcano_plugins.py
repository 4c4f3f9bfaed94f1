"""What the plugins of Volcano Jobs make and inject."""

import json
from collections.abc import Callable
from typing import Any

Job = Callable[..., str]

MASTER_AND_WORKERS = "{name: master, replicas: 1}; {name: worker, replicas: 2}"


def test_svc_names_the_hosts_of_every_task(cluster: Any, job: Job) -> None:
    cluster.apply(
        job(tasks="{name: my-server, replicas: 1}; {name: client, replicas: 2}", plugins="{svc: [], env: []}")
    )
    env = cluster.env("j-client-1")
    assert env["VC_MY_SERVER_HOSTS"] == "j-my-server-0.j"
    assert env["VC_CLIENT_HOSTS"] == "j-client-0.j,j-client-1.j"
    assert (env["VC_CLIENT_NUM"], env["VC_TASK_INDEX"], env["VK_TASK_INDEX"]) == ("2", "1", "1")
    assert cluster.get("ConfigMap/j-svc").body["data"]["my_server.host"] == "j-my-server-0.j"
    assert cluster.get("Service/j").spec["clusterIP"] == "None"
    assert cluster.get("NetworkPolicy/j").spec["policyTypes"] == ["Ingress"]
    spec = cluster.get("Pod/j-client-1").spec
    assert (spec["hostname"], spec["subdomain"]) == ("j-client-1", "j")
    assert {"name": "j-svc", "mountPath": "/etc/volcano"} in spec["containers"][0]["volumeMounts"]


def test_svc_does_without_policy_and_environment_where_it_is_told_so(cluster: Any, job: Job) -> None:
    cluster.apply(job(plugins='{svc: ["--disable-network-policy=true", "--inject-hosts-env=false"]}'))
    assert not cluster.has("NetworkPolicy/j")
    assert cluster.env("j-w-0") == {}


def test_a_host_that_is_no_more_leaves_the_list(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks="{name: w, replicas: 3}", plugins="{svc: []}"))
    cluster.apply(job(tasks="{name: w, replicas: 1}", plugins="{svc: []}"))
    data = cluster.get("ConfigMap/j-svc").body["data"]
    assert data == {"w.host": "j-w-0.j", "VC_W_HOSTS": "j-w-0.j", "VC_W_NUM": "1"}


def test_ssh_asks_for_keys_and_never_holds_one(cluster: Any, job: Job) -> None:
    cluster.apply(job(plugins="{ssh: []}"))
    secret = cluster.get("Secret/j-ssh")
    assert secret.annotations["tidegate.dev/generate"] == "ssh-keypair"
    assert set(secret.body["stringData"]) == {"config"}
    assert "Host j-w-1\n  HostName j-w-1.j" in secret.body["stringData"]["config"]
    volume = cluster.get("Pod/j-w-0").spec["volumes"][0]
    assert volume["secret"]["defaultMode"] == 0o600
    assert cluster.get("Pod/j-w-0").spec["containers"][0]["volumeMounts"] == [
        {"name": "j-ssh", "mountPath": "/root/.ssh"}
    ]


def test_pytorch_tells_the_rendezvous_and_the_rank(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks=MASTER_AND_WORKERS, plugins='{pytorch: ["--wait-master-enabled=true"]}'))
    env = cluster.env("j-worker-1")
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("j-master-0.j", "23456")
    assert (env["RANK"], env["WORLD_SIZE"]) == ("2", "3")
    assert cluster.env("j-master-0")["RANK"] == "0"
    worker, master = cluster.get("Pod/j-worker-0").spec, cluster.get("Pod/j-master-0").spec
    assert worker["containers"][0]["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456}]
    assert [item["name"] for item in worker["initContainers"]] == ["wait-for-master"]
    assert "initContainers" not in master
    assert cluster.has("Service/j")


def test_tensorflow_describes_the_cluster_unless_there_is_only_one_pod(cluster: Any, job: Job) -> None:
    cluster.apply(
        job(tasks="{name: ps, replicas: 1}; {name: worker, replicas: 2}", plugins="{tensorflow: [--port=3333]}")
    )
    config = json.loads(cluster.env("j-worker-1")["TF_CONFIG"])
    assert config == {
        "cluster": {"ps": ["j-ps-0.j:3333"], "worker": ["j-worker-0.j:3333", "j-worker-1.j:3333"]},
        "task": {"type": "worker", "index": 1},
    }
    cluster.apply(job("one", tasks="{name: worker, replicas: 1}", plugins="{tensorflow: []}"))
    assert "TF_CONFIG" not in cluster.env("one-worker-0")


def test_mpi_tells_only_the_master_where_the_workers_are(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks=MASTER_AND_WORKERS, plugins="{mpi: []}"))
    assert cluster.env("j-master-0")["MPI_HOST"] == "j-worker-0.j,j-worker-1.j"
    assert "MPI_HOST" not in cluster.env("j-worker-0")
    assert cluster.get("Pod/j-worker-0").spec["containers"][0]["ports"][0]["containerPort"] == 22
    assert cluster.has("Secret/j-ssh")


def test_ray_starts_a_head_and_its_workers(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks="{name: head, replicas: 1}; {name: worker, replicas: 1}", plugins="{ray: []}"))
    head = cluster.get("Pod/j-head-0").spec["containers"][0]
    worker = cluster.get("Pod/j-worker-0").spec["containers"][0]
    assert head["command"][2].startswith("ray start --head --block")
    assert worker["command"][2] == "ray start --block --address=j-head-0.j:6379"
    ports = {item["name"]: item["port"] for item in cluster.get("Service/j-head-svc").spec["ports"]}
    assert ports == {"gcs": 6379, "dashboard": 8265, "client-server": 10001}


def test_hcclrank_counts_masters_first(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks=MASTER_AND_WORKERS, plugins="{hcclrank: []}"))
    ranks = [cluster.get(f"Pod/{name}").annotations["hccl/rankIndex"] for name in sorted(cluster.pods())]
    assert ranks == ["0", "1", "2"]


def test_a_task_in_partitions_is_a_group_of_sub_groups(cluster: Any, job: Job) -> None:
    topology = "{mode: hard, highestTierAllowed: 1}"
    policy = f"{{totalPartitions: 2, partitionSize: 2, minPartitions: 1, networkTopology: {topology} }}"
    cluster.apply(job(tasks=f"{{name: w, replicas: 4, partitionPolicy: {policy} }}"))
    group = cluster.get(f"PodGroup/j-{cluster.get('Job/j').uid}").spec
    assert group["minMember"] == 2
    assert group["subGroupPolicy"] == [
        {
            "name": "w",
            "subGroupSize": 2,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        }
    ]
    assert [cluster.get(f"Pod/j-w-{index}").labels["volcano.sh/partition-id"] for index in range(4)] == [
        "0",
        "0",
        "1",
        "1",
    ]
