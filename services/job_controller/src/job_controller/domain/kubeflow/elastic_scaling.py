"""An elastic PyTorch job that names metrics is scaled by an autoscaler of its own, within its range."""

from job_controller.domain.kubeflow.changes import owned_metadata
from job_controller.domain.kubeflow.replica_specs import ReplicatedJob
from kube import Manifest, api_version_of


def autoscaler_manifest(job: ReplicatedJob) -> Manifest | None:
    """The HorizontalPodAutoscaler of the job, None where it names no metrics."""
    metrics = (job.spec.get("elasticPolicy") or {}).get("metrics")
    if not metrics or job.elastic is None:
        return None
    kind = job.source.kind
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": owned_metadata(job.source, job.name, {}, {}),
        "spec": {
            "scaleTargetRef": {"apiVersion": api_version_of(kind), "kind": kind.partition(".")[0], "name": job.name},
            "minReplicas": job.elastic[0],
            "maxReplicas": job.elastic[1],
            "metrics": metrics,
        },
    }
