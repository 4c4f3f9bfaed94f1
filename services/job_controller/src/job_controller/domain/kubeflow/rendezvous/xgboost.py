"""XGBoost and LightGBM: the master tracks, workers are ranked behind it."""

from job_controller.domain.kubeflow.rendezvous.variables import variables
from job_controller.domain.kubeflow.replica_specs import ReplicaSpec, ReplicatedJob, member_name
from kube import Manifest


def xgboost_env(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> list[Manifest]:
    masters, workers = job.of_type("Master"), job.of_type("Worker")
    rank = index + (job.count_of("Master") if replica.type == "Worker" else 0)
    values: dict[str, object] = {
        "PYTHONUNBUFFERED": 1,
        "MASTER_PORT": job.port_of(masters or replica),
        "MASTER_ADDR": member_name(job.name, "Master", 0),
        "WORLD_SIZE": job.total,
        "RANK": rank,
    }
    if job.total > 1:
        names = [member_name(job.name, "Worker", number) for number in range(job.count_of("Worker"))]
        values |= {"WORKER_PORT": job.port_of(workers or replica), "WORKER_ADDRS": ",".join(names)}
    return variables(values)
