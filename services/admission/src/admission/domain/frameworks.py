"""The training frameworks of Kubeflow's v1 jobs: what each calls its replicas, its container and its port."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Framework:
    """One kind of job. ``replicas`` is the field with the replica specs, ``leaders`` the types of which one may exist."""

    kind: str
    replicas: str
    container: str
    port_name: str
    port: int
    restart_policy: str
    types: tuple[str, ...]
    leaders: tuple[str, ...] = ()
    needs_leader: bool = False


FRAMEWORKS: dict[str, Framework] = {
    f"{item.kind}.kubeflow.org": item
    for item in (
        Framework(
            "TFJob", "tfReplicaSpecs", "tensorflow", "tfjob-port", 2222, "Never",
            ("Chief", "Master", "PS", "Worker", "Evaluator"), ("Chief", "Master"),
        ),
        Framework(
            "PyTorchJob", "pytorchReplicaSpecs", "pytorch", "pytorchjob-port", 23456, "OnFailure",
            ("Master", "Worker"), ("Master",),
        ),
        Framework(
            "XGBoostJob", "xgbReplicaSpecs", "xgboost", "xgboostjob-port", 9999, "Never",
            ("Master", "Worker"), ("Master",), needs_leader=True,
        ),
        Framework("PaddleJob", "paddleReplicaSpecs", "paddle", "master", 36543, "OnFailure", ("Master", "Worker")),
        Framework("JAXJob", "jaxReplicaSpecs", "jax", "jaxjob-port", 6666, "Never", ("Worker",)),
    )
}  # fmt: skip
