"""The index of admission: for each kind its shape, what is filled in, what must hold, and what is worth a warning."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from admission.domain import (
    cluster_queue,
    colocation_profile,
    command,
    core_kinds,
    cron_job,
    device,
    elastic_quota,
    goals,
    horizontal_autoscaler,
    hyper_node,
    inference_graph,
    inference_service,
    job_flow,
    job_set,
    kubeflow_job,
    kueue_work,
    metric_reading,
    mpi_job,
    names,
    node,
    pod,
    pod_group,
    pod_migration,
    priority,
    qos_class,
    queue_hierarchy,
    queue_tree,
    quota_annotations,
    recommendation,
    reservation,
    resource_claim,
    resource_quota,
    run_policy,
    runtime_class,
    scaled_object,
    serving_runtime,
    topology,
    train_job,
    training_runtime,
    volcano_job,
    volumes,
    workloads,
)
from admission.domain.errors import FieldError
from admission.domain.frameworks import FRAMEWORKS
from admission.domain.object_meta import METADATA, NameRule
from admission.domain.pod_template import POD_SPEC
from admission.domain.shapes import MAPPING, Fields, Shape, fields
from admission.domain.world import Review, World
from kube import Object

Default = Callable[[Review], None]
Check = Callable[[Review], Iterable[FieldError]]
Warn = Callable[[Review], Iterable[str]]
CheckDelete = Callable[[Object, World], Iterable[FieldError]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for one kind. Defaults run in order before the checks; the shape holds before both."""

    shape: Fields
    defaults: tuple[Default, ...] = ()
    checks: tuple[Check, ...] = ()
    warnings: tuple[Warn, ...] = ()
    name: NameRule = names.dns_subdomain
    deletes: tuple[CheckDelete, ...] = ()
    keeps_status: bool = False
    """Whether users may give a status: of kinds that nobody else speaks for."""


def _top(shape: Shape) -> Fields:
    return fields(metadata=METADATA, spec=shape)


def _flat(shape: Fields) -> Fields:
    return Fields({**shape.known, "metadata": METADATA}, closed=shape.closed)


def _mapping() -> Fields:
    return fields(metadata=METADATA)


def _told(spec: Fields, status: Fields = MAPPING) -> Fields:
    """The shape of a kind of which users may give a status."""
    return fields(metadata=METADATA, spec=spec, status=status)


UNRULED = Rules(_told(MAPPING), keeps_status=True)

VOLCANO = {
    "Job.batch.volcano.sh": Rules(
        _top(volcano_job.JOB_SPEC),
        (volcano_job.default_job,),
        (volcano_job.check_job, volcano_job.check_job_update),
        (volcano_job.warn_job,),
    ),
    "CronJob.batch.volcano.sh": Rules(
        _top(cron_job.VOLCANO_CRON_SPEC),
        (cron_job.default_volcano_cron,),
        (cron_job.check_volcano_cron,),
        (cron_job.warn_volcano_cron,),
    ),
    "PodGroup.scheduling.volcano.sh": Rules(
        _top(pod_group.POD_GROUP_SPEC),
        (pod_group.default_pod_group,),
        (pod_group.check_pod_group,),
        (pod_group.warn_pod_group,),
    ),
    "Queue.scheduling.volcano.sh": Rules(
        _top(queue_tree.QUEUE_SPEC),
        (queue_tree.default_queue, queue_hierarchy.default_hierarchy),
        (
            queue_tree.check_queue_numbers,
            queue_tree.check_queue_place,
            queue_tree.check_queue_share,
            queue_hierarchy.check_hierarchy,
        ),
        (queue_hierarchy.warn_hierarchy,),
        deletes=(queue_tree.check_queue_delete,),
    ),
    "Command.bus.volcano.sh": Rules(_flat(command.COMMAND), (command.default_command,), (command.check_command,)),
    "JobFlow.flow.volcano.sh": Rules(
        _top(job_flow.JOB_FLOW_SPEC),
        (job_flow.default_job_flow,),
        (job_flow.check_job_flow,),
        (job_flow.warn_job_flow,),
    ),
    "JobTemplate.flow.volcano.sh": Rules(
        _top(volcano_job.JOB_SPEC),
        (job_flow.default_job_template,),
        (job_flow.check_job_template,),
        (job_flow.warn_job_template,),
    ),
    "HyperNode.topology.volcano.sh": Rules(_top(hyper_node.HYPER_NODE_SPEC), checks=(hyper_node.check_hyper_node,)),
}

KUBEFLOW = {
    kind: Rules(
        _top(kubeflow_job.job_spec_shape(framework)),
        (kubeflow_job.default_kubeflow_job,),
        (kubeflow_job.check_kubeflow_job,),
        (run_policy.warn_run_policy,),
        name=names.dns_1035_label,
    )
    for kind, framework in FRAMEWORKS.items()
} | {
    "MPIJob.kubeflow.org": Rules(
        _top(mpi_job.MPI_JOB_SPEC),
        (mpi_job.default_mpi_job,),
        (mpi_job.check_mpi_job,),
        (run_policy.warn_run_policy,),
        name=names.dns_1035_label,
    ),
    "TrainJob.trainer.kubeflow.org": Rules(
        _top(train_job.TRAIN_JOB_SPEC),
        (train_job.default_train_job,),
        (train_job.check_train_job,),
        (train_job.warn_train_job,),
        name=names.dns_1035_label,
    ),
    **{
        f"{kind}.trainer.kubeflow.org": Rules(
            _top(training_runtime.RUNTIME_SPEC), (training_runtime.default_runtime,), (training_runtime.check_runtime,)
        )
        for kind in train_job.RUNTIME_KINDS
    },
    "JobSet.jobset.x-k8s.io": Rules(
        _top(job_set.JOB_SET_SPEC), (job_set.default_job_set,), (job_set.check_job_set,), name=names.dns_1035_label
    ),
}

CORE = {
    "Pod": Rules(
        _top(POD_SPEC),
        (
            pod.default_pod,
            runtime_class.complete_pod,
            colocation_profile.apply_profiles,
            pod.default_pod,
            pod.default_pod_priority,
            runtime_class.complete_pod,
        ),
        (
            pod.check_pod,
            runtime_class.check_pod_class,
            qos_class.check_qos,
            qos_class.check_qos_kept,
            pod.check_pod_update,
        ),
    ),
    "Deployment.apps": Rules(
        _top(workloads.WORKLOAD_SPEC), (workloads.default_deployment,), (workloads.check_workload,)
    ),
    "ReplicaSet.apps": Rules(_top(workloads.WORKLOAD_SPEC), (workloads.default_workload,), (workloads.check_workload,)),
    "StatefulSet.apps": Rules(
        _top(workloads.WORKLOAD_SPEC), (workloads.default_stateful_set,), (workloads.check_workload,)
    ),
    "DaemonSet.apps": Rules(
        _top(workloads.WORKLOAD_SPEC), (workloads.default_daemon_set,), (workloads.check_workload,)
    ),
    "Job.batch": Rules(_top(workloads.BATCH_JOB_SPEC), (workloads.default_batch_job,), (workloads.check_batch_job,)),
    "CronJob.batch": Rules(
        _top(cron_job.BATCH_CRON_SPEC), (cron_job.default_batch_cron,), (cron_job.check_batch_cron,)
    ),
    "Node": Rules(
        _told(node.NODE_SPEC, node.NODE_STATUS),
        checks=(node.check_node,),
        keeps_status=True,
    ),
    "ConfigMap": Rules(_flat(core_kinds.CONFIG_MAP), checks=(core_kinds.check_config_map,)),
    "Secret": Rules(_flat(core_kinds.SECRET), (core_kinds.default_secret,), (core_kinds.check_secret,)),
    "Service": Rules(
        _top(core_kinds.SERVICE_SPEC),
        (core_kinds.default_service,),
        (core_kinds.check_service,),
        name=names.dns_1035_label,
    ),
    "Namespace": Rules(_mapping(), name=names.dns_label, deletes=(core_kinds.check_namespace_delete,)),
    "PodDisruptionBudget.policy": Rules(_top(core_kinds.BUDGET_SPEC), checks=(core_kinds.check_budget,)),
    "ResourceQuota": Rules(
        _top(resource_quota.RESOURCE_QUOTA_SPEC),
        checks=(resource_quota.check_resource_quota,),
        warnings=(resource_quota.warn_resource_quota,),
    ),
    "ResourceClaim.resource.k8s.io": Rules(_top(resource_claim.CLAIM_SPEC), checks=(resource_claim.check_claim,)),
    "ResourceClaimTemplate.resource.k8s.io": Rules(
        _top(resource_claim.TEMPLATE_SPEC), checks=(resource_claim.check_template,)
    ),
    "DeviceClass.resource.k8s.io": Rules(_top(resource_claim.CLASS_SPEC)),
    "PersistentVolumeClaim": Rules(_top(volumes.CLAIM_SPEC), checks=(volumes.check_volume_claim,)),
    "PersistentVolume": Rules(_top(volumes.VOLUME_SPEC), (volumes.default_volume,), (volumes.check_volume,)),
    "StorageClass.storage.k8s.io": Rules(
        _flat(volumes.CLASS), (volumes.default_storage_class,), (volumes.check_storage_class,)
    ),
    "PriorityClass.scheduling.k8s.io": Rules(
        _flat(priority.PRIORITY_CLASS), (priority.default_priority_class,), (priority.check_priority_class,)
    ),
    "RuntimeClass.node.k8s.io": Rules(
        _flat(runtime_class.RUNTIME_CLASS),
        (runtime_class.default_runtime_class,),
        (runtime_class.check_runtime_class,),
    ),
}

QUOTAS = {
    "ClusterColocationProfile.config.koordinator.sh": Rules(
        _top(colocation_profile.PROFILE_SPEC), checks=(colocation_profile.check_profile,)
    ),
    "ElasticQuota.scheduling.sigs.k8s.io": Rules(
        _top(elastic_quota.QUOTA_SPEC),
        checks=(
            elastic_quota.check_quota_amounts,
            elastic_quota.check_quota_place,
            quota_annotations.check_quota_annotations,
        ),
        deletes=(elastic_quota.check_quota_delete,),
    ),
    "Recommendation.analysis.koordinator.sh": Rules(
        _top(recommendation.RECOMMENDATION_SPEC), checks=(recommendation.check_recommendation,)
    ),
    "Reservation.scheduling.koordinator.sh": Rules(
        _top(reservation.RESERVATION_SPEC),
        (reservation.default_reservation,),
        (reservation.check_reservation,),
    ),
    "PodMigrationJob.scheduling.koordinator.sh": Rules(
        _top(pod_migration.MIGRATION_SPEC),
        (pod_migration.default_migration,),
        (pod_migration.check_migration,),
    ),
    "ClusterNetworkTopology.scheduling.koordinator.sh": Rules(
        _top(topology.NETWORK_SPEC), checks=(topology.check_network_layers,)
    ),
    **dict.fromkeys(
        ("PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.sigs.k8s.io"),
        Rules(
            _top(pod_group.COSCHEDULING_SPEC),
            (pod_group.default_coscheduling_group,),
            (pod_group.check_coscheduling_group,),
        ),
    ),
    "PodGroup.scheduling.k8s.io": Rules(_top(pod_group.KUBERNETES_SPEC), checks=(pod_group.check_kubernetes_group,)),
    "Workload.scheduling.k8s.io": Rules(_top(pod_group.WORKLOAD_SPEC), checks=(pod_group.check_kubernetes_workload,)),
    "ClusterQueue.kueue.x-k8s.io": Rules(
        _top(cluster_queue.CLUSTER_QUEUE_SPEC),
        (cluster_queue.default_cluster_queue,),
        (cluster_queue.check_cluster_queue,),
    ),
    "Cohort.kueue.x-k8s.io": Rules(_top(cluster_queue.COHORT_SPEC), checks=(cluster_queue.check_cohort,)),
    "Topology.kueue.x-k8s.io": Rules(_top(topology.TOPOLOGY_SPEC), checks=(topology.check_topology_levels,)),
    "ResourceFlavor.kueue.x-k8s.io": Rules(_top(topology.FLAVOR_SPEC), checks=(topology.check_flavor,)),
    "LocalQueue.kueue.x-k8s.io": Rules(
        _top(cluster_queue.LOCAL_QUEUE_SPEC), (cluster_queue.default_local_queue,), (cluster_queue.check_local_queue,)
    ),
    "Workload.kueue.x-k8s.io": Rules(
        _told(kueue_work.WORKLOAD_SPEC, kueue_work.WORKLOAD_STATUS),
        checks=(kueue_work.check_workload_object,),
        keeps_status=True,
    ),
    "WorkloadPriorityClass.kueue.x-k8s.io": Rules(
        _flat(kueue_work.PRIORITY_CLASS), checks=(kueue_work.check_work_priority,)
    ),
    "AdmissionCheck.kueue.x-k8s.io": Rules(
        _told(kueue_work.CHECK_SPEC, kueue_work.CHECK_STATUS),
        checks=(kueue_work.check_admission_check,),
        keeps_status=True,
    ),
    "Device.scheduling.koordinator.sh": Rules(
        _told(device.DEVICE_SPEC),
        checks=(device.check_device,),
        keeps_status=True,
    ),
}

SIZES = {
    "HorizontalPodAutoscaler.autoscaling": Rules(
        _top(horizontal_autoscaler.AUTOSCALER_SPEC),
        (horizontal_autoscaler.default_autoscaler,),
        (horizontal_autoscaler.check_autoscaler, goals.check_goal_of),
        (goals.warn_autoscaler_goal,),
    ),
    "ScaledObject.keda.sh": Rules(
        _top(scaled_object.SCALED_SPEC),
        checks=(scaled_object.check_scaled_object, goals.check_goal_of),
        warnings=(scaled_object.warn_scaled_object, goals.warn_autoscaler_goal),
    ),
    **dict.fromkeys(
        ("TriggerAuthentication.keda.sh", "ClusterTriggerAuthentication.keda.sh"),
        Rules(
            _top(scaled_object.AUTHENTICATION_SPEC),
            checks=(scaled_object.check_authentication,),
            warnings=(scaled_object.warn_authentication,),
        ),
    ),
    "InferenceService.serving.kserve.io": Rules(
        _top(inference_service.SERVICE_SPEC),
        (inference_service.default_service,),
        (inference_service.check_service,),
        (inference_service.warn_service,),
        name=inference_service.service_name,
    ),
    **dict.fromkeys(
        ("ServingRuntime.serving.kserve.io", "ClusterServingRuntime.serving.kserve.io"),
        Rules(
            _top(serving_runtime.RUNTIME_SPEC),
            checks=(serving_runtime.check_runtime,),
            warnings=(serving_runtime.warn_runtime,),
        ),
    ),
    "InferenceGraph.serving.kserve.io": Rules(_top(inference_graph.GRAPH_SPEC), checks=(inference_graph.check_graph,)),
    "MetricReading.tidegate.dev": Rules(_top(metric_reading.READING_SPEC), checks=(metric_reading.check_reading,)),
}

RULES: dict[str, Rules] = {**VOLCANO, **KUBEFLOW, **CORE, **QUOTAS, **SIZES}
