"""Work of all makes, for pretended nodes: the examples, and what shows the rest of what services do at an API server."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from cluster_tools import eventually
from control_plane import ControlPlane
from played_services import serve

Manifest = dict[str, Any]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHOWN = (
    "cronjob",
    "jobflow",
    "jobset",
    "mpijob",
    "podgroup",
    "reservation",
    "tfjob",
    "trainjob",
    "volcano-queues",
)
TRAINERS = {
    "TFJob": ("tfReplicaSpecs", "Worker", "tensorflow"),
    "PyTorchJob": ("pytorchReplicaSpecs", "Master", "pytorch"),
    "XGBoostJob": ("xgbReplicaSpecs", "Master", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "Worker", "paddle"),
    "JAXJob": ("jaxReplicaSpecs", "Worker", "jax"),
}
VOLCANO = "batch.volcano.sh/v1alpha1"


def play(plane: ControlPlane) -> None:
    """Hand all of it in; returns when it has come to its end."""
    _make_devices(plane)
    manifests = [*_examples(), *_shown_besides()]
    # What a job names (its queue, its runtime) has to be known before it is let in.
    _until_let_in(plane, manifests, 150)
    _until_finished(plane, 240)
    _preempt(plane)
    _abort(plane)
    _claim(plane)
    _move(plane)
    _lend(plane)
    _measure(plane)
    serve(plane)


def _move(plane: ControlPlane) -> None:
    """A pod of a ReplicaSet leaves its node, once there is a place for another one."""
    template = pod("1h")
    template["metadata"]["labels"] = {"app": "web"}
    template["spec"] |= {"schedulerName": "tidegate", "restartPolicy": "Always"}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    kubectl(
        plane,
        "apply",
        "-f",
        "-",
        given=[{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}],
    )
    pods = "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb"
    eventually(lambda: sum(_is_ready(one) for one in plane.request("GET", pods)["items"]) == 2)
    name = plane.request("GET", pods)["items"][0]["metadata"]["name"]
    api = "scheduling.koordinator.sh/v1alpha1"
    job = {
        "apiVersion": api,
        "kind": "PodMigrationJob",
        "metadata": {"name": "move"},
        "spec": {"podRef": {"name": name}},
    }
    kubectl(plane, "apply", "-f", "-", given=[job])
    eventually(
        lambda: plane.request("GET", f"/apis/{api}/podmigrationjobs/move").get("status", {}).get("phase") == "Succeeded"
    )


def _is_ready(one: Manifest) -> bool:
    conditions = one.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _measure(plane: ControlPlane) -> None:
    """A sample of what is outside is asked for as long as an autoscaler goes by it; its source is not there."""
    autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    readings = "/apis/tidegate.dev/v1/namespaces/default/metricreadings"
    source = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": reference, "maxReplicas": 2, "metrics": [{"type": "External", "external": source}]}
    plane.request("POST", autoscalers, {"metadata": {"name": "web"}, "spec": spec})
    eventually(lambda: plane.request("GET", readings)["items"])
    plane.request("DELETE", f"{autoscalers}/web")
    eventually(lambda: not plane.request("GET", readings)["items"])


def _lend(plane: ControlPlane) -> None:
    """A node that its agent measures lends what it does not use; its rules come, change and go, and nonsense is told."""
    slo, configs = "/apis/slo.koordinator.sh/v1alpha1/nodeslos/n0", "/api/v1/namespaces/koordinator-system/configmaps"
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
    plane.request("POST", configs, _colocation(60))
    eventually(lambda: "kubernetes.io/batch-cpu" in plane.request("GET", "/api/v1/nodes/n0")["status"]["allocatable"])
    thresholds = "resourceUsedThresholdWithBE"
    plane.request("PUT", f"{configs}/slo-controller-config", _colocation(50))
    eventually(lambda: plane.request("GET", slo)["spec"][thresholds]["cpuSuppressThresholdPercent"] == 50)
    plane.request("PUT", f"{configs}/slo-controller-config", _colocation(500))
    eventually(lambda: plane.request("GET", f"{configs}/slo-controller-config")["metadata"].get("annotations"))
    target = {"type": "workload", "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    api = {"apiVersion": "analysis.koordinator.sh/v1alpha1", "kind": "Recommendation"}
    recommendations = "/apis/analysis.koordinator.sh/v1alpha1/namespaces/default/recommendations"
    plane.request("POST", recommendations, {**api, "metadata": {"name": "web"}, "spec": {"target": target}})
    eventually(lambda: plane.request("GET", f"{recommendations}/web").get("status"))
    plane.request("DELETE", f"{configs}/slo-controller-config")
    eventually(lambda: not plane.request("GET", slo)["spec"][thresholds].get("enable"))


def _colocation(percent: int) -> Manifest:
    """What lends something of all nodes, and normalises their cores."""
    data = {
        "colocation-config": {"enable": True},
        "cpu-normalization-config": {"enable": False},
        "resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": percent}},
    }
    return {"metadata": {"name": "slo-controller-config"}, "data": {key: json.dumps(one) for key, one in data.items()}}


def _claim(plane: ControlPlane) -> None:
    """A job whose claim is made for it; nobody here provides a volume."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kubectl(
        plane,
        "apply",
        "-f",
        "-",
        given=[volcano_job("kept", pod(), volumes=[{"mountPath": "/x", "volumeClaim": claim}])],
    )
    eventually(lambda: plane.request("GET", "/api/v1/namespaces/default/persistentvolumeclaims")["items"])


def _until_let_in(plane: ControlPlane, manifests: list[Manifest], seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            kubectl(plane, "apply", "-f", "-", given=manifests)
            return
        except AssertionError:
            if time.monotonic() > until:
                raise


def kubectl(plane: ControlPlane, *words: str, given: list[Manifest] | None = None) -> str:
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), *words]
    text = yaml.safe_dump_all(given) if given else None
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _examples() -> Iterator[Manifest]:
    for name in SHOWN:
        for manifest in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()):
            _let_end(manifest)
            yield manifest


def _let_end(part: Any) -> None:
    """Every pod in it runs for a second, on whatever node."""
    if isinstance(part, list):
        for item in part:
            _let_end(item)
    elif isinstance(part, dict):
        if "containers" in (part.get("spec") or {}):
            part.setdefault("metadata", {}).setdefault("annotations", {})["lab/runs-for"] = "1s"
        for item in part.values():
            _let_end(item)


def pod(seconds: str = "1s", container: str = "main", **resources: str) -> Manifest:
    """A template of a pod that runs for so long."""
    asked = {name.replace("gpu", "nvidia.com/gpu"): value for name, value in (resources or {"cpu": "1"}).items()}
    main = {"name": container, "image": "busybox", "resources": {"requests": asked, "limits": asked}}
    return {
        "metadata": {"annotations": {"lab/runs-for": seconds}},
        "spec": {"restartPolicy": "Never", "containers": [main]},
    }


def volcano_job(name: str, template: Manifest, replicas: int = 1, **spec: Any) -> Manifest:
    tasks = [{"name": "w", "replicas": replicas, "template": template}]
    spec = {"schedulerName": "volcano", "minAvailable": replicas, "tasks": tasks, **spec}
    return {"apiVersion": VOLCANO, "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _shown_besides() -> Iterator[Manifest]:
    for kind, (field, role, container) in TRAINERS.items():
        replicas = {role: {"replicas": 1, "template": pod(container=container)}}
        yield {
            "apiVersion": "kubeflow.org/v1",
            "kind": kind,
            "metadata": {"name": f"short-{kind.lower()}"},
            "spec": {"runPolicy": {"ttlSecondsAfterFinished": 1}, field: replicas},
        }
    plugins = {"svc": [], "ssh": [], "env": []}
    yield volcano_job("linked", pod(), 2, plugins=plugins, ttlSecondsAfterFinished=1)
    elastic = {"minReplicas": 1, "maxReplicas": 2, "rdzvBackend": "c10d", "metrics": [_METRIC]}
    workers = {"Worker": {"replicas": 1, "template": pod(container="pytorch")}}
    yield {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "elastic"},
        "spec": {"elasticPolicy": elastic, "pytorchReplicaSpecs": workers},
    }
    yield {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "team"},
        "spec": {"min": {"cpu": "2"}, "max": {"cpu": "4"}},
    }
    yield from _in_a_local_queue()
    claimed = pod()
    claimed["spec"] |= {"schedulerName": "tidegate", "resourceClaims": [{"name": "d", "resourceClaimName": "one"}]}
    claimed["spec"]["containers"][0]["resources"]["claims"] = [{"name": "d"}]
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "one"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
    }
    claimed["metadata"]["name"] = "claimed"
    yield {"apiVersion": "v1", "kind": "Pod", **claimed}


def _in_a_local_queue() -> Iterator[Manifest]:
    """Two Jobs, for which there is quota one after the other."""
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    quota = [{"name": "cpu", "nominalQuota": 2}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": quota}]}]
    team = {"cohortName": "faculty", "namespaceSelector": {}, "resourceGroups": groups}
    yield {**kueue, "kind": "Cohort", "metadata": {"name": "faculty"}, "spec": {}}
    yield {**kueue, "kind": "ResourceFlavor", "metadata": {"name": "any"}}
    yield {**kueue, "kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": team}
    yield {**kueue, "kind": "LocalQueue", "metadata": {"name": "team"}, "spec": {"clusterQueue": "team"}}
    for name in ("first", "second"):
        template = pod()
        template["spec"]["schedulerName"] = "tidegate"
        yield {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "team"}},
            "spec": {"suspend": True, "parallelism": 2, "completions": 2, "template": template},
        }


_METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def _make_devices(plane: ControlPlane) -> None:
    slices = {"pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1}, "driver": "lab", "nodeName": "n0"}
    kubectl(
        plane,
        "apply",
        "-f",
        "-",
        given=[
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}},
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "n0"},
                "spec": {**slices, "devices": [{"name": "d0"}]},
            },
        ],
    )


ENDED = ("Completed", "Succeed", "Failed")


def _until_finished(plane: ControlPlane, seconds: float) -> None:
    until = time.monotonic() + seconds
    while left := _unfinished(plane):
        assert time.monotonic() < until, f"not at its end after {seconds:g} s: {left}"
        time.sleep(1)


def _unfinished(plane: ControlPlane) -> list[str]:
    """What has not come to its end: pods that have not, and jobs that do not say so yet."""
    pods = plane.request("GET", "/api/v1/namespaces/default/pods")["items"]
    left = [
        one["metadata"]["name"] for one in pods if one.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]
    for path, ended in (
        ("batch.volcano.sh/v1alpha1/namespaces/default/jobs", lambda s: s.get("state", {}).get("phase") in ENDED),
        ("flow.volcano.sh/v1alpha1/namespaces/default/jobflows", lambda s: s.get("state", {}).get("phase") in ENDED),
        ("batch/v1/namespaces/default/jobs", _has_ended),
        ("trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs", _has_ended),
        ("jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", _has_ended),
        *((f"kubeflow.org/v1/namespaces/default/{kind.lower()}s", _has_ended) for kind in TRAINERS),
        ("kubeflow.org/v2beta1/namespaces/default/mpijobs", _has_ended),
    ):
        items = plane.request("GET", f"/apis/{path}")["items"]
        left += [f"{path}/{one['metadata']['name']}" for one in items if not ended(one.get("status") or {})]
    # A CronJob's run may just have begun.
    return [name for name in left if "every-minute" not in name]


def _has_ended(status: Manifest) -> bool:
    return any(
        one["type"] in ("Complete", "Completed", "Succeeded") and one["status"] == "True"
        for one in status.get("conditions") or ()
    )


def _preempt(plane: ControlPlane) -> None:
    """A pod of more worth takes the place of one of less."""
    worth = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    kubectl(plane, "apply", "-f", "-", given=[worth, volcano_job("low", pod("1h", gpu="8"), 8, minAvailable=1)])
    eventually(lambda: _phase(plane, "low") == "Running", 120)
    high = pod(gpu="8")
    high["spec"]["priorityClassName"] = "high"
    kubectl(plane, "apply", "-f", "-", given=[volcano_job("high", high, priorityClassName="high")])
    eventually(lambda: _phase(plane, "high") == "Completed", 120)


def _abort(plane: ControlPlane) -> None:
    """A command stops a job, and is deleted as it is obeyed."""
    owner = plane.request("GET", f"/apis/{VOLCANO}/namespaces/default/jobs/low")
    target = {"apiVersion": VOLCANO, "kind": "Job", "name": "low", "uid": owner["metadata"]["uid"], "controller": True}
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "abort", "namespace": "default", "ownerReferences": [target]},
        "action": "AbortJob",
        "target": target,
    }
    kubectl(plane, "create", "-f", "-", given=[command])
    eventually(lambda: _phase(plane, "low") == "Aborted", 120)
    eventually(lambda: json.loads(kubectl(plane, "get", "commands", "-o", "json"))["items"] == [], 30)


def _phase(plane: ControlPlane, name: str) -> str:
    found = plane.request("GET", f"/apis/{VOLCANO}/namespaces/default/jobs/{name}")
    return str(found.get("status", {}).get("state", {}).get("phase", ""))
