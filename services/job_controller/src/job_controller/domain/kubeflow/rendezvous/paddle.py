"""Paddle: the pod of rank 0 listens on its own address, all others are told its name."""

from job_controller.domain.kubeflow.rendezvous.variables import field_variable, variable, variables
from job_controller.domain.kubeflow.replica_specs import ReplicaSpec, ReplicatedJob, member_name
from kube import Manifest


def paddle_env(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> list[Manifest]:
    head = job.leader or replica
    env = variables({"PYTHONUNBUFFERED": 1, "PADDLE_JOB_ID": job.name, "PADDLE_NNODES": job.total})
    port = job.port_of(head)
    if replica.type == head.type and index == 0:
        env += [field_variable("POD_IP_DUMMY", "status.podIP"), variable("PADDLE_MASTER", f"$(POD_IP_DUMMY):{port}")]
    else:
        env.append(variable("PADDLE_MASTER", f"{member_name(job.name, head.type, 0)}:{port}"))
    if job.leader is not None:
        # With a master the job is in parameter server mode: the master serves, the workers train.
        env.append(variable("PADDLE_SERVER_NUM" if replica.type == "Master" else "PADDLE_TRAINER_NUM", 1))
    return env
