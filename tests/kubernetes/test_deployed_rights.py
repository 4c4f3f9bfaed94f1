"""Work of all makes runs to its end with the rights that the charts give, nothing is forbidden, and no right is idle."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_tools import DEFINITIONS
from control_plane import ControlPlane, control_plane, node
from deployed_rights import (
    Right,
    apply_hook_rights,
    asked,
    asked_as,
    audit_flags,
    deployed_services,
    granted,
    kubeconfig_of,
)
from helm_tools import TRIAL, Helm, deep, of_kind
from lab_programs import NoLab
from played_jobs import play

from admission.domain.definitions import DEFINED
from kube import KINDS

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("deployed rights")]

UPSTREAMS = "queues.scheduling.volcano.sh"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Path, Helm]]:
    """A control plane that writes down what the accounts of a release ask for, with the release on it."""
    folder = tmp_path_factory.mktemp("rights")
    try:
        with control_plane(folder / "plane", api_flags=audit_flags(folder)) as plane:
            for number in range(8):
                plane.request("POST", "/api/v1/nodes", node(f"n{number}", gpus=8))
            helm = Helm(folder, plane)
            helm.install("tidegate", deep(TRIAL, {"definitions": {"install": False}}))
            yield plane, folder, helm
    except NoLab as error:
        pytest.skip(str(error))


def define(plane: ControlPlane, folder: Path) -> str:
    kubeconfig = kubeconfig_of(plane, "tidegate-definitions", folder)
    command = [sys.executable, "-m", "admission.definitions", str(kubeconfig), "--serving-runtimes"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_the_charts_permit_is_what_the_services_do(audited: tuple[ControlPlane, Path, Helm]) -> None:
    plane, folder, helm = audited
    apply_hook_rights(plane, helm.template("tidegate"))
    theirs = _of_upstream(plane, UPSTREAMS)

    first, second = define(plane, folder), define(plane, folder)
    for account in ("stranger", "reader"):
        _make_account(plane, account)
    _let_read(plane, "reader")
    with deployed_services(plane, folder) as address:
        play(plane)
        said = {account: asked_as(plane, account, address) for account in ("stranger", "reader")}

    assert _resource_version(plane, UPSTREAMS) == theirs
    assert f"{UPSTREAMS}: is there, and is left as it is" in first
    assert first.count(": defined\n") == len(DEFINED) - 1
    assert second.count(": is there, and the same\n") == len(DEFINED) - 1
    runtime = "kserve-tritonserver"
    assert f"{runtime}: made" in first and f"{runtime}: is there, and is left as it is" in second
    got, forbidden = asked(folder)
    assert forbidden == []
    assert "may not list pods" in said["stranger"]
    assert int(said["reader"].partition(" ")[0]) > 10
    permitted = {
        role["metadata"]["name"].removeprefix("tidegate-system-"): granted(role["rules"])
        for role in of_kind(helm.template("tidegate", {}), "ClusterRole")
    }
    permitted["tidegate-admission"] |= {("get", "", "secrets"), ("patch", "", "secrets")}
    assert got.keys() == permitted.keys()
    idle = {account: permitted[account] - got[account] - _explained(plane) for account in permitted}
    assert {account: sorted(rights) for account, rights in idle.items() if rights} == {}


def _make_account(plane: ControlPlane, name: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    plane.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)


def _let_read(plane: ControlPlane, name: str) -> None:
    group = "rbac.authorization.k8s.io"
    path, kind = f"/apis/{group}/v1/namespaces/default", {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    plane.request("POST", f"{path}/roles", {**kind, "kind": "Role", "rules": [rule]})
    binding = {
        **kind,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    plane.request("POST", f"{path}/rolebindings", binding)


def _of_upstream(plane: ControlPlane, name: str) -> str:
    """A definition that somebody else has made before; its version."""
    from admission.domain.definitions import definition

    kind = next(kind for kind in DEFINED if f"{KINDS[kind].plural}.{KINDS[kind].group}" == name)
    made = definition(kind)
    del made["metadata"]["labels"]
    plane.request("POST", DEFINITIONS, made)
    return _resource_version(plane, name, "Established")


def _resource_version(plane: ControlPlane, name: str, condition: str = "") -> str:
    from cluster_tools import eventually

    def settled() -> str | None:
        found = plane.request("GET", f"{DEFINITIONS}/{name}")
        conditions = {one["type"] for one in (found.get("status") or {}).get("conditions") or ()}
        return str(found["metadata"]["generation"]) if not condition or condition in conditions else None

    version = eventually(settled)
    assert isinstance(version, str)
    return version


def _explained(plane: ControlPlane) -> set[Right]:
    """Rights that this course does not need, and why they are given."""
    served = {
        (group["name"], resource["name"])
        for group in plane.request("GET", "/apis")["groups"]
        for version in group["versions"]
        for resource in plane.request("GET", f"/apis/{version['groupVersion']}")["resources"]
    }
    unserved = {
        (verb, info.group, resource)
        for info in KINDS.values()
        if info.group and (info.group, info.plural) not in served
        for resource in (info.plural, f"{info.plural}/status")
        for verb in ("create", "get", "list", "watch", "patch", "delete")
    }
    return unserved | LOST_ANSWERS | GUARDED_OWNERS | SELDOM


JOBS = [
    *((kind.group, kind.plural) for kind in KINDS.values() if kind.group == "kubeflow.org"),
    *(("batch.volcano.sh", "jobs"), ("jobset.x-k8s.io", "jobsets"), ("trainer.kubeflow.org", "trainjobs")),
    *(("batch.volcano.sh", "cronjobs"), ("flow.volcano.sh", "jobflows"), ("flow.volcano.sh", "jobtemplates")),
]
SERVING = [
    *(("serving.kserve.io", name) for name in ("inferenceservices", "inferencegraphs")),
    ("keda.sh", "scaledobjects"),
]
SCALED = [("apps", name) for name in ("deployments", "replicasets", "statefulsets")]
WRITTEN = [
    *(("", name) for name in ("configmaps", "persistentvolumeclaims", "persistentvolumes", "secrets", "services")),
    *(("autoscaling", "horizontalpodautoscalers"), ("networking.k8s.io", "networkpolicies"), ("batch", "jobs")),
    *(("scheduling.volcano.sh", "podgroups"), ("scheduling.volcano.sh", "queues"), ("bus.volcano.sh", "commands")),
    *(("scheduling.koordinator.sh", name) for name in ("podmigrationjobs", "reservations")),
    *(("slo.koordinator.sh", "nodemetrics"), ("", "nodes"), ("tidegate.dev", "metricreadings")),
    *(("slo.koordinator.sh", "nodeslos"), ("analysis.koordinator.sh", "recommendations")),
    ("topology.node.k8s.io", "noderesourcetopologies"),
    *(("kueue.x-k8s.io", name) for name in ("workloads", "clusterqueues", "localqueues", "cohorts")),
    *(("scheduling.sigs.k8s.io", "elasticquotas"), ("resource.k8s.io", "resourceclaims"), *JOBS),
    *(("networking.k8s.io", "ingresses"), *SERVING, *SCALED),
]
LOST_ANSWERS = {("get", group, plural) for group, plural in WRITTEN}
"""What was written is looked at again when the answer was lost, or when somebody else wrote at the same time."""
GUARDED_OWNERS = {("update", group, f"{plural}/finalizers") for group, plural in [*JOBS, *SERVING]}
"""No request: the API server asks about it when an owned object is made. Without it nothing would run here."""
SELDOM: set[Right] = {
    ("patch", "resource.k8s.io", "resourceclaims/binding"),  # no request either: asked about when devices are allocated
    ("patch", "topology.node.k8s.io", "noderesourcetopologies"),  # nodes that tell of their NUMA nodes
    *((verb, "scheduling.koordinator.sh", "devices") for verb in ("create", "patch")),  # nodes with GPUs
    *(
        (verb, "tidegate.dev", "metricreadings") for verb in ("patch", "update")
    ),  # sources, and schedules, that say something else
    ("patch", "slo.koordinator.sh", "nodemetrics"),  # nodes that ask for evictions
    *(("patch", "", name) for name in ("persistentvolumeclaims", "persistentvolumes")),  # volumes that are there
    ("patch", "", "services"),  # services whose model listens elsewhere, or is called by a balancer
    *(
        (verb, "networking.k8s.io", "ingresses") for verb in ("create", "patch", "delete")
    ),  # where `routes` asks for them
    ("patch", "autoscaling", "horizontalpodautoscalers/status"),  # where `horizontal` is set
    *(("patch", "apps", f"{name}/scale") for name in ("replicasets", "statefulsets")),  # what ScaledObjects name
    *(
        (verb, "keda.sh", "scaledobjects") for verb in ("patch", "delete")
    ),  # services that are scaled otherwise than before
    ("patch", "serving.kserve.io", "inferencegraphs/status"),
    ("patch", "", "pods"),  # reservations, quota of single pods
    ("patch", "scheduling.volcano.sh", "podgroups"),  # jobs that are scaled, quota of gangs
    ("patch", "scheduling.volcano.sh", "queues"),  # queues that are closed with their parent
    ("patch", "kueue.x-k8s.io", "cohorts/status"),  # fair sharing
    *((verb, "kueue.x-k8s.io", "workloads") for verb in ("patch", "delete")),  # admission checks, quota taken back
    *((verb, "jobset.x-k8s.io", "jobsets") for verb in ("patch", "delete")),  # TrainJobs that are suspended or resized
    ("delete", "batch", "jobs"),  # JobSets that begin anew
    ("delete", "kubeflow.org", "mpijobs"),  # with a time to live
    ("delete", "", "services"),  # jobs that are scaled down
    ("create", "scheduling.koordinator.sh", "podmigrationjobs"),  # plans, where there is a policy for them
    ("delete", "scheduling.koordinator.sh", "podmigrationjobs"),  # an hour after they are over
    ("delete", "scheduling.koordinator.sh", "reservations"),  # a day after they expired
}
