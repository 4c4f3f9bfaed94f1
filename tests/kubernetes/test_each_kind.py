"""A manifest of each kind that is not shown elsewhere, as its users have it: applied by kubectl, run to its end."""

from collections.abc import Iterator
from typing import Any

import pytest
from applied import apply, delete, end, get, has, kubectl, reaches, template
from cluster_tools import eventually, running_system
from control_plane import ControlPlane, node

NAMES = "tidegate,volcano,koord-scheduler,default-scheduler"
PODS = "/api/v1/namespaces/default/pods"
KUBEFLOW, TRAINER, KUEUE = "kubeflow.org/v1", "trainer.kubeflow.org/v1alpha1", "kueue.x-k8s.io/v1beta2"


@pytest.fixture(scope="module", autouse=True)
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All services, in the place of every scheduler."""
    with running_system(plane, tmp_path_factory.mktemp("system"), schedulers=NAMES):
        yield


def replicas(container: str, **counts: int) -> dict[str, Any]:
    """The replica specs of a training job."""
    made = {}
    for role, count in counts.items():
        pods = template()
        pods["spec"]["containers"][0]["name"] = container
        made[role] = {"replicas": count, "restartPolicy": "Never", "template": pods}
    return made


def named(api: str, kind: str, name: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **parts}


def pod(name: str, scheduler: str, labels: dict[str, str], cpu: str = "1", **spec: Any) -> dict[str, Any]:
    made = template(cpu, schedulerName=scheduler, **spec)
    made["metadata"] |= {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", **made}


def phases(plane: ControlPlane, selector: str) -> dict[str, str]:
    items = get(plane, f"{PODS}?labelSelector={selector}")["items"]
    return {one["metadata"]["name"]: one["status"]["phase"] for one in items}


def test_a_tf_job_runs_to_its_end(plane: ControlPlane) -> None:
    specs = replicas("tensorflow", PS=1, Worker=2)
    job = named(KUBEFLOW, "TFJob", "tf", spec={"successPolicy": "AllWorkers", "tfReplicaSpecs": specs})
    apply(plane, job)

    done = reaches(plane, f"/apis/{KUBEFLOW}/namespaces/default/tfjobs/tf", has("Succeeded"))

    assert done["status"]["replicaStatuses"]["Worker"]["succeeded"] == 2
    assert "Succeeded" in kubectl(plane, "get", "tfjob", "tf")
    delete(plane, job)


def test_a_train_job_runs_to_its_end(plane: ControlPlane) -> None:
    pods = template()
    pods["spec"]["containers"][0]["name"] = "node"
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"name": "node", "template": {"metadata": {"labels": step}, "spec": {"template": pods}}}
    policy = {"numNodes": 1, "torch": {"numProcPerNode": "auto"}}
    runtime = named(
        TRAINER, "TrainingRuntime", "torch", spec={"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [job]}}}
    )
    reference = {"kind": "TrainingRuntime", "name": "torch"}
    train = named(TRAINER, "TrainJob", "slope", spec={"runtimeRef": reference, "trainer": {"numNodes": 3}})
    apply(plane, runtime, train)

    reaches(plane, f"/apis/{TRAINER}/namespaces/default/trainjobs/slope", has("Complete"))

    assert "Complete" in kubectl(plane, "get", "trainjob", "slope")
    delete(plane, train, runtime)


def test_a_pod_group_of_koordinator_starts_whole(plane: ControlPlane) -> None:
    label = "pod-group.scheduling.sigs.k8s.io"
    group = named("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "trio", spec={"minMember": 3})
    members = [pod(f"trio-{number}", "koord-scheduler", {label: "trio"}) for number in range(3)]
    apply(plane, group, *members[:2])
    eventually(lambda: "PodScheduled" in str(get(plane, f"{PODS}/trio-0")["status"]))
    assert set(phases(plane, f"{label}%3Dtrio").values()) == {"Pending"}

    apply(plane, members[2])

    eventually(lambda: set(phases(plane, f"{label}%3Dtrio").values()) == {"Succeeded"})
    delete(plane, group, *members)


def test_an_elastic_quota_lets_as_many_run_as_it_has_room_for(plane: ControlPlane) -> None:
    label = "quota.scheduling.koordinator.sh/name"
    amounts = {"cpu": "2", "memory": "8Gi"}
    quota = named("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "team", spec={"min": amounts, "max": amounts})
    members = [pod(f"team-{number}", "koord-scheduler", {label: "team"}) for number in range(3)]
    for member in members:
        member["metadata"]["annotations"]["lab/runs-for"] = "1h"
    apply(plane, quota, *members)

    path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas/team"
    reaches(plane, path, lambda status: (status.get("used") or {}).get("cpu") == "2")
    eventually(lambda: sorted(phases(plane, f"{label}%3Dteam").values()) == ["Pending", "Running", "Running"])
    late = next(name for name, phase in phases(plane, f"{label}%3Dteam").items() if phase == "Pending")
    end(plane, *(one["metadata"]["name"] for one in members if one["metadata"]["name"] != late))
    eventually(lambda: phases(plane, f"{label}%3Dteam")[late] == "Running")
    delete(plane, *members, quota)


def test_workloads_of_kueue_tell_their_conditions(plane: ControlPlane) -> None:
    """One that its user writes and one that is made for a Job, in a queue that has room for one at a time."""
    resources = [{"name": "cpu", "nominalQuota": 2}, {"name": "memory", "nominalQuota": "8Gi"}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "any", "resources": resources}]}
    flavor: Any = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "any"}}
    queue: Any = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "one-at-a-time"}}
    queue["spec"] = {"namespaceSelector": {}, "resourceGroups": [group]}
    local = named(KUEUE, "LocalQueue", "team", spec={"clusterQueue": "one-at-a-time"})
    sets = [{"name": "main", "count": 2, "template": {"spec": template()["spec"]}}]
    written = named(KUEUE, "Workload", "written", spec={"queueName": "team", "podSets": sets})
    job = named("batch/v1", "Job", "made", spec={"suspend": True, "parallelism": 2, "completions": 2})
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    job["spec"]["template"] = template(schedulerName="tidegate")
    workloads = f"/apis/{KUEUE}/namespaces/default/workloads"

    def of_job() -> Any:
        found = [one for one in get(plane, workloads)["items"] if one["metadata"]["name"] != "written"]
        return found[0] if found else None

    apply(plane, flavor, queue, local, written)
    held = reaches(plane, f"{workloads}/written", has("Admitted"))["status"]
    assert has("QuotaReserved")(held)
    assert held["admission"]["clusterQueue"] == "one-at-a-time"

    apply(plane, job)
    waits = eventually(lambda: found if (found := of_job()) and found.get("status", {}).get("conditions") else None)
    told = {one["type"]: one for one in waits["status"]["conditions"]}
    assert told["QuotaReserved"]["status"] == "False"
    assert "cpu" in told["QuotaReserved"]["message"]
    reaches(
        plane,
        f"/apis/{KUEUE}/clusterqueues/one-at-a-time",
        lambda status: (status.get("pendingWorkloads"), status.get("admittedWorkloads")) == (1, 1),
    )

    delete(plane, written)
    reaches(plane, "/apis/batch/v1/namespaces/default/jobs/made", has("Complete"))
    eventually(lambda: has("Finished")((of_job() or {}).get("status") or {}), 45)
    delete(plane, job, local, queue, flavor)


def test_a_reservation_is_kept_for_its_owner(plane: ControlPlane) -> None:
    plane.request("POST", "/api/v1/nodes", node("kept", cpu="2", labels={"kept": "yes"}))
    here = {"nodeSelector": {"kept": "yes"}}
    spec = {
        "ttl": "10m",
        "owners": [{"labelSelector": {"matchLabels": {"work": "release"}}}],
        "template": {"spec": {**template("2")["spec"], **here}},
    }
    api = "scheduling.koordinator.sh/v1alpha1"
    reservation = {"apiVersion": api, "kind": "Reservation", "metadata": {"name": "kept"}, "spec": spec}
    apply(plane, reservation)
    path = f"/apis/{api}/reservations/kept"
    reaches(plane, path, lambda status: (status.get("phase"), status.get("nodeName")) == ("Available", "kept"))
    other, owner = (pod(name, "koord-scheduler", {"work": name}, "2", **here) for name in ("other", "release"))
    apply(plane, other)
    eventually(lambda: "PodScheduled" in str(get(plane, f"{PODS}/other")["status"]))

    apply(plane, owner)

    ended = reaches(plane, path, lambda status: status.get("phase") == "Succeeded")
    assert [one["name"] for one in ended["status"]["currentOwners"]] == ["release"]
    eventually(lambda: get(plane, f"{PODS}/other")["status"]["phase"] == "Succeeded")
    delete(plane, owner, other, reservation)
    plane.request("DELETE", "/api/v1/nodes/kept")


def test_a_plain_deployment_is_available(plane: ControlPlane) -> None:
    pods = template()
    del pods["spec"]["restartPolicy"]
    pods["metadata"] = {"labels": {"app": "web"}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": pods}
    deployment = named("apps/v1", "Deployment", "web", spec=spec)
    apply(plane, deployment)

    reaches(plane, "/apis/apps/v1/namespaces/default/deployments/web", has("Available"))

    assert "3/3" in kubectl(plane, "get", "deployment", "web")
    delete(plane, deployment)


def test_a_plain_job_is_complete(plane: ControlPlane) -> None:
    job = named("batch/v1", "Job", "plain", spec={"parallelism": 2, "completions": 4, "template": template()})
    apply(plane, job)

    done = reaches(plane, "/apis/batch/v1/namespaces/default/jobs/plain", has("Complete"))

    assert done["status"]["succeeded"] == 4
    delete(plane, job)
