"""The five v1 kinds and what is fixed for each: fields, container, port, restart policy, order of types."""

from job_controller.domain.kubeflow.replica_specs import Framework

TENSORFLOW = Framework(
    kind="TFJob.kubeflow.org",
    specs_field="tfReplicaSpecs",
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    restart_policy="Never",
    types=("Chief", "Master", "Worker", "PS", "Evaluator"),
    leaders=("Chief", "Master"),
)
PYTORCH = Framework(
    kind="PyTorchJob.kubeflow.org",
    specs_field="pytorchReplicaSpecs",
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    restart_policy="OnFailure",
    types=("Master", "Worker"),
    leaders=("Master",),
)
XGBOOST = Framework(
    kind="XGBoostJob.kubeflow.org",
    specs_field="xgbReplicaSpecs",
    container="xgboost",
    port_name="xgboostjob-port",
    port=9999,
    restart_policy="Never",
    types=("Master", "Worker"),
    leaders=("Master",),
)
PADDLE = Framework(
    kind="PaddleJob.kubeflow.org",
    specs_field="paddleReplicaSpecs",
    container="paddle",
    port_name="master",
    port=36543,
    restart_policy="OnFailure",
    types=("Master", "Worker"),
    leaders=("Master",),
)
JAX = Framework(
    kind="JAXJob.kubeflow.org",
    specs_field="jaxReplicaSpecs",
    container="jax",
    port_name="jaxjob-port",
    port=6666,
    restart_policy="Never",
    types=("Worker",),
    leaders=(),
)
FRAMEWORKS = (TENSORFLOW, PYTORCH, XGBOOST, PADDLE, JAX)
