"""How the processes of a job find each other: the environment that each framework reads."""

from collections.abc import Callable

from job_controller.domain.kubeflow.frameworks import JAX, PADDLE, PYTORCH, TENSORFLOW, XGBOOST
from job_controller.domain.kubeflow.rendezvous.jax import jax_env
from job_controller.domain.kubeflow.rendezvous.paddle import paddle_env
from job_controller.domain.kubeflow.rendezvous.pytorch import pytorch_env
from job_controller.domain.kubeflow.rendezvous.tensorflow import tensorflow_env
from job_controller.domain.kubeflow.rendezvous.xgboost import xgboost_env
from job_controller.domain.kubeflow.replica_specs import ReplicaSpec, ReplicatedJob
from kube import Manifest

ENVIRONMENTS: dict[str, Callable[[ReplicatedJob, ReplicaSpec, int], list[Manifest]]] = {
    TENSORFLOW.kind: tensorflow_env,
    PYTORCH.kind: pytorch_env,
    XGBOOST.kind: xgboost_env,
    PADDLE.kind: paddle_env,
    JAX.kind: jax_env,
}


def rendezvous_env(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> list[Manifest]:
    """The variables that the pod ``index`` of ``replica`` is given, in the order in which they may refer to each other."""
    return ENVIRONMENTS[job.framework.kind](job, replica, index)
