"""The kinds of jobs, of their gangs and queues, and of what they are moved by."""

from document_kind import Support

_JOB = ("job_controller",)
_GATE = ("queue_manager", "gang_scheduler")
_TRAINING = (
    "replicas, restart policies, run policy (`cleanPodPolicy`, TTL, deadline, `backoffLimit`, suspend, "
    "`schedulingPolicy` with queue, minimum and priority), one gang, a headless Service per pod"
)
JOBS = (
    Support(
        "Job.batch.volcano.sh",
        _JOB,
        "tasks, minima of job and tasks, policies (events, exit codes, timeouts), retries, `dependsOn`, `minSuccess`, TTL, "
        "volumes, partitions as sub-gangs, plugins svc, env, ssh, pytorch, tensorflow, mpi, ray, hcclrank; scaling",
    ),
    Support(
        "CronJob.batch.volcano.sh",
        _JOB,
        "schedule (`@every` too), time zone, concurrency policy, deadline, history, suspend",
    ),
    Support(
        "JobFlow.flow.volcano.sh",
        _JOB,
        "steps in order by `dependsOn`, on completion or when the probes hold: task phases, HTTP and TCP; `jobRetainPolicy`",
        "a probe that is added after its target was made; on simulated nodes a pod that is ready answers every probe",
    ),
    Support("JobTemplate.flow.volcano.sh", _JOB, "the blueprint of a step; lists the jobs made from it"),
    Support(
        "PodMigrationJob.scheduling.koordinator.sh",
        ("descheduler",),
        "`mode` (ReservationFirst, EvictDirectly), `podRef`, `ttl` (30 minutes where none is given), `paused`, "
        "`reservationOptions` (with `preemptionOptions` less important pods are moved out of its way), the grace period of "
        "`deleteOptions`; arbitration by node, namespace, workload, disruption budget and gang; phases, reasons and "
        "conditions as upstream; the label `koordinator.sh/evict-policy` of pods; an hour after it is over it is deleted",
    ),
    Support(
        "Reservation.scheduling.koordinator.sh",
        ("descheduler", "gang_scheduler"),
        "placed like the pod of its template (`nodeName` included) where there is free room; holds it and its host ports for its owners "
        "(any of the list, all that one names), who use it first; `allocateOnce`, `allocatePolicy`, restricted options, `ttl`, "
        "`expires`, `unschedulable`, taints, order; resizing; on pods `reservation-affinity`, `exact-match-reservation`, "
        "`reservation-ignored`; `preAllocation` over running pods, with its policy. It is charged to no queue, evicts nobody and "
        "is evicted by nobody; a day after it is over it is deleted. Phases Pending, Waiting, Available, Succeeded, Failed "
        "(reason `Expired`)",
        "labels of the template do not count for other pods' affinity",
    ),
    Support(
        "Command.bus.volcano.sh", ("job_controller", "queue_manager"), "actions on jobs; opening and closing queues"
    ),
    Support(
        "PodGroup.scheduling.volcano.sh",
        _GATE,
        "`minMember`, `minTaskMember`, sub-groups, queue, priority, network topology (by labels of zones and racks where there are no "
        "HyperNodes), also by annotation (`network-topology-spec`, `network-topology-mode`, `-highest-tier`), on pods of gangs "
        "without one, too; `minResources` at the gate; the annotations `task-topology-affinity`, `-anti-affinity`, `-task-order`; "
        "`tidegate.dev/placement` (`binpack` or `spread`; of its job, too), which goes before its queue's",
    ),
    Support(
        "Queue.scheduling.volcano.sh",
        _GATE,
        "the tree (`parent`, or the hierarchy annotations): weight, deserved, guarantee, capability at every ancestor, priority, "
        "`dequeueStrategy`, `reclaimable`, open and closed, affinity to node groups; "
        "the annotation `tidegate.dev/placement` (`binpack` or `spread`), which goes before the cluster's, and holds for the queues below",
        "`type`, `extendClusters`",
    ),
    Support("TFJob.kubeflow.org", _JOB, f"{_TRAINING}; `TF_CONFIG`, `successPolicy`, `enableDynamicWorker`"),
    Support(
        "PyTorchJob.kubeflow.org",
        _JOB,
        f"{_TRAINING}; `MASTER_ADDR` and its like, elastic `PET_*`",
        "metrics of `elasticPolicy` make a HorizontalPodAutoscaler, which says that it cannot scale a PyTorchJob",
    ),
    Support("XGBoostJob.kubeflow.org", _JOB, f"{_TRAINING}; `MASTER_ADDR` and `WORKER_ADDRS`"),
    Support("PaddleJob.kubeflow.org", _JOB, f"{_TRAINING}; `PADDLE_*`"),
    Support("JAXJob.kubeflow.org", _JOB, f"{_TRAINING}; `COORDINATOR_ADDRESS` and its like"),
    Support(
        "MPIJob.kubeflow.org",
        _JOB,
        "launcher and workers, host file, ssh keys, `launcherCreationPolicy`, run policy, for Open MPI, Intel MPI and MPICH",
        "the programs (`mpirun`, `sshd`) have to be on the machine",
    ),
    Support(
        "TrainJob.trainer.kubeflow.org",
        _JOB,
        "becomes a JobSet of its runtime: trainer, initialisers, patches, torch, mpi, jax and xgboost policies, suspend, "
        "deadline; with another `numNodes` it begins anew",
    ),
    Support("TrainingRuntime.trainer.kubeflow.org", _JOB, "the blueprint of TrainJobs of its namespace"),
    Support("ClusterTrainingRuntime.trainer.kubeflow.org", _JOB, "the blueprint of TrainJobs everywhere"),
    Support(
        "JobSet.jobset.x-k8s.io",
        _JOB,
        "replicated jobs, `dependsOn`, start in order, success and failure policies, restarts, suspend, TTL, host names, `coordinator`; "
        "in a LocalQueue it gets quota, and its place in a topology, as a whole",
        "`volumeClaimPolicies`",
    ),
)
