"""What a pod is counted with, and to what it belongs."""

from kube import Manifest, Store, from_manifest
from testing.scenarios.footprint import footprint
from testing.scenarios.membership import group_of, jobs_of, owners_of, queue_of, queues_of


def pod(spec: Manifest | None = None, **metadata: object) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec or {}}


def requests(cpu: str, **more: object) -> Manifest:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_a_sidecar_counts_while_a_later_init_container_runs() -> None:
    init = [requests("100m", restartPolicy="Always"), requests("200m")]
    spec = {"initContainers": init, "containers": [requests("100m")]}
    assert footprint(from_manifest(pod(spec))) == {"cpu": 300, "pods": 1}


def test_overhead_comes_on_top_and_limits_stand_for_requests() -> None:
    spec = {"overhead": {"cpu": "1"}, "containers": [{"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]}
    assert footprint(from_manifest(pod(spec))) == {"cpu": 3000, "memory": 1 << 30, "pods": 1}


def test_old_names_of_batch_resources_mean_the_new_ones() -> None:
    spec = {"containers": [{"resources": {"requests": {"koordinator.sh/batch-cpu": "500"}}}]}
    assert footprint(from_manifest(pod(spec))) == {"kubernetes.io/batch-cpu": 500, "pods": 1}


def test_a_pod_is_charged_to_the_queue_of_its_gang_before_its_own_and_its_namespaces() -> None:
    store = Store()
    own = {"scheduling.volcano.sh/queue-name": "own"}
    assert queue_of(from_manifest(pod()), store) == "default"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": {**own}}}
    store.put(from_manifest(namespace))
    assert queue_of(from_manifest(pod()), store) == "own"
    grouped = from_manifest(pod(annotations={"scheduling.k8s.io/group-name": "g", **own}))
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"queue": "q"},
    }
    store.put(from_manifest(group))
    assert (group_of(grouped), queue_of(grouped, store)) == ("g", "q")


def test_quotas_and_local_queues_are_queues_too() -> None:
    labels = {"quota.scheduling.koordinator.sh/name": "a", "kueue.x-k8s.io/queue-name": "l"}
    assert queues_of(from_manifest(pod(labels=labels)), Store()) == {"default", "a", "l"}


def test_owners_are_found_up_to_the_top() -> None:
    def owner(api_version: str, kind: str, name: str) -> list[Manifest]:
        return [{"apiVersion": api_version, "kind": kind, "name": name, "uid": name}]

    store = Store()
    references = owner("trainer.kubeflow.org/v1alpha1", "TrainJob", "t")
    metadata = {"name": "s", "ownerReferences": references}
    store.put(from_manifest({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata}))
    owned = from_manifest(pod(ownerReferences=owner("jobset.x-k8s.io/v1alpha2", "JobSet", "s")))
    assert [key.name for key in owners_of(owned, store)] == ["s", "t"]
    assert jobs_of(owned, store) == {"t"}
