"""What every kind comes to: who acts on it, what of it is honoured, what is taken and has no effect.

`docs/supported-kinds.md` is made from it. The tests hold it against the kinds that the code names; kinds that nobody
acts on need no entry.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Support:
    """One kind. ``actors`` are the services that act on it."""

    kind: str
    actors: tuple[str, ...]
    honoured: str
    idle: str = ""


_JOB = ("job_controller",)
_GATE = ("queue_manager", "gang_scheduler")
_TRAINING = (
    "replicas, restart policies, run policy (`cleanPodPolicy`, TTL, deadline, `backoffLimit`, suspend, "
    "`schedulingPolicy` with queue, minimum and priority), one gang, a headless Service per pod"
)
SUPPORT = (
    Support(
        "Pod",
        (
            "gang_scheduler",
            "node_agent",
            "cluster_gateway",
            "slo_controller",
            "inference_autoscaler",
            "inference_gateway",
        ),
        "requests with init containers, sidecars and overhead, `runtimeClassName`; node selector, node affinity, "
        "tolerations, pod affinity and anti-affinity, topology spread, host ports, scheduling gates, nominated nodes, volume "
        "claims, priority and `preemptionPolicy`, `volcano.sh/preemptable` and `volcano.sh/cooldown-time`, an elastic quota's "
        "`preemptible` (who says no is not evicted), whole cards, shares of "
        "cards and MIG instances, CPUs of its own (bind and exclusive policies), NUMA policies, RDMA devices near its cards; "
        "which cards it wants: partitions, models and names of virtual GPUs, one NUMA node or PCIe switch, labels "
        "(`scheduling.koordinator.sh/gpu-partition-spec`, `device-allocate-hint`, `nvidia.com/use-gputype` and its like); "
        "command, arguments, "
        "environment, probes, hooks, init containers and sidecars, restart policy, deadlines, grace; limits, users and "
        "mounts as far as the machine permits (docs/operations.md); volumes `emptyDir`, `configMap`, `secret`, "
        "`downwardAPI`, `projected`, `hostPath`, `persistentVolumeClaim`, `ephemeral`; gangs by annotation, with "
        "Koordinator's match policies; resource claims",
        "`image` where no program stands in for it (docs/serving.md; without `command` the pod ends or waits with "
        "`ImageNotRunnable`), `serviceAccountName`, `dnsPolicy`, "
        "other kinds of volumes keep the pod from starting, with the reason",
    ),
    Support(
        "Node",
        ("cluster_gateway", "gang_scheduler", "queue_manager", "node_agent", "slo_controller"),
        "made by node agents and by `--sim-nodes`; labels (of a node group, of a revocable zone), "
        "taints (those that are not tolerated, or not any longer, take pods away; a node that is not ready has one), "
        "`unschedulable`, allocatable, cards, CPUs and NUMA nodes of "
        "the inventory; Koordinator's labels and annotations on binding CPUs, NUMA policy, reserved CPUs, amplification of cpu "
        "and usage thresholds",
    ),
    Support(
        "Namespace",
        ("cluster_gateway",),
        "a deleted one takes all that is in it along; the annotation `scheduling.volcano.sh/queue-name`",
    ),
    Support(
        "ConfigMap",
        ("node_agent", "gang_scheduler", "slo_controller"),
        "variables and files of pods; files follow changes; `tidegate-system/scheduling` pauses scheduling, "
        "`koordinator-system/slo-controller-config` says how nodes are shared",
    ),
    Support(
        "Secret",
        ("cluster_gateway", "node_agent"),
        "variables and files of pods. Values are kept outside the log; reading one shows the names of its keys only",
    ),
    Support(
        "Service",
        ("cluster_gateway",),
        "its name stands for the addresses of the pods that it selects, for pods of the same namespace; headless names of pods",
        "ports, `targetPort`, ClusterIP, NodePort, LoadBalancer, ExternalName: there is no load balancing",
    ),
    Support(
        "PersistentVolumeClaim",
        ("job_controller", "cluster_gateway", "gang_scheduler", "node_agent"),
        "bound to a PersistentVolume of its class, its modes, its selector and its size (the smallest), or to one that is made "
        "for it; at once, or on the node of its first pod where its class says so. A pod waits, with the reason in Kubernetes' "
        "words, for a claim that is missing, unbound, lost, being deleted, elsewhere, or `ReadWriteOncePod` and taken. Kept while "
        "pods use it. On this machine it is a folder in the data folder that outlives pods, on the node of its first pod. A claim "
        "whose class no StorageClass describes gets such a folder, unless there are volumes of that class",
        "the size of a folder is not enforced, and its content stays for the next claim of its name; "
        "growing, snapshots, `dataSource`; `ReadWriteOnce` does not keep a second node "
        "away where the volume can be had there",
    ),
    Support(
        "PersistentVolume",
        ("cluster_gateway", "gang_scheduler"),
        "class, capacity, access modes, `claimRef`, node affinity, reclaim policies `Retain` and `Delete`; on this machine "
        "`hostPath` and `local` are what its pods see",
        "other sources: its pods get a folder of the node; `Recycle` is taken as `Retain`",
    ),
    Support(
        "StorageClass.storage.k8s.io",
        ("cluster_gateway", "gang_scheduler"),
        "`volumeBindingMode`, `allowedTopologies`, `reclaimPolicy`, the default class, `kubernetes.io/no-provisioner`; "
        "for every other `provisioner` a folder is made",
        "`parameters`, `mountOptions`, `allowVolumeExpansion`",
    ),
    Support(
        "ResourceQuota",
        ("admission", "cluster_gateway", "queue_manager"),
        "`hard` limits what gangs of the namespace may be let in with, of the pods that `scopes` and `scopeSelector` choose "
        "(Terminating, NotTerminating, BestEffort, NotBestEffort, PriorityClass, CrossNamespacePodAffinity); numbers of other "
        "objects and `requests.storage` limit what may be created; `status` shows what is used",
        "the scope VolumeAttributesClass; pods without a gang are counted and not kept out",
    ),
    Support(
        "PriorityClass.scheduling.k8s.io",
        ("queue_manager", "gang_scheduler"),
        "the order in which gangs of a queue are served; preemption inside a queue, `preemptionPolicy`",
    ),
    Support(
        "RuntimeClass.node.k8s.io",
        ("cluster_gateway", "queue_manager", "gang_scheduler"),
        "`overhead`, `scheduling.nodeSelector` and `scheduling.tolerations` are added to every pod that names it, also to those "
        "of jobs; a pod without its class, or one that contradicts it, waits with the reason",
        "`handler`",
    ),
    Support(
        "Deployment.apps",
        ("cluster_gateway",),
        "replicas, rolling updates and `Recreate`, history, `paused`, progress deadline",
    ),
    Support("ReplicaSet.apps", ("cluster_gateway",), "replicas"),
    Support(
        "StatefulSet.apps", ("cluster_gateway",), "ordered and parallel pods, claims from templates, rolling updates"
    ),
    Support("DaemonSet.apps", ("cluster_gateway",), "a pod on every node that fits"),
    Support(
        "Job.batch",
        ("cluster_gateway", "queue_manager"),
        "completions, parallelism, indexed jobs, backoff limits, pod failure policy, deadline, suspend, TTL; with the label "
        "`kueue.x-k8s.io/queue-name` it is suspended until there is quota for all its pods, or for as many as "
        "`kueue.x-k8s.io/job-min-parallelism` says; with `kueue.x-k8s.io/elastic-job` it gets more pods as there is quota; the "
        "quota of pods that it needs no more comes back before it ends",
    ),
    Support(
        "CronJob.batch",
        ("cluster_gateway",),
        "schedule (`@every` too), time zone, concurrency policy, deadline, history",
    ),
    Support(
        "PodDisruptionBudget.policy",
        ("cluster_gateway", "gang_scheduler"),
        "its status is kept; victims are chosen so that as few as possible are broken",
    ),
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
    Support(
        "NodeMetric.slo.koordinator.sh",
        ("cluster_gateway", "descheduler", "gang_scheduler", "slo_controller"),
        "made from what node agents measure, for `tidegate top`; what may be lent of a node rests on it; its annotation "
        "`tidegate.dev/evictions` names the pods that have to leave the node; "
        "nodes whose fresh usage, percentiles included, is above their "
        "threshold take no more pods; with `scoreWeight` those that use less come first",
    ),
    Support(
        "Recommendation.analysis.koordinator.sh",
        ("slo_controller", "admission"),
        "`target`, by workload or by labels of pods: what each container should ask for, with bounds, by percentiles of past use, "
        "daily peaks of memory and kills for want of it; `tidegate recommend` writes it into the workload",
    ),
    Support(
        "HorizontalPodAutoscaler.autoscaling",
        ("inference_autoscaler",),
        "autoscaling/v2 for Deployments, StatefulSets and ReplicaSets: all types of metrics and targets, tolerance, pods that are "
        "not ready or not measured, several metrics, `behavior` with windows, policies and tolerance, `minReplicas: 0`; conditions "
        "with Kubernetes' reasons. A pod that a rolling update has too many of is not taken for one that is wanted. On Kubernetes "
        "the cluster's own controller acts on them. With `tidegate.dev/target` a goal sizes the target (docs/autoscaling.md)",
        "targets of other kinds; on Kubernetes `tidegate.dev/target`, which its condition `SizedByGoal` says",
    ),
    Support(
        "ScaledObject.keda.sh",
        ("inference_autoscaler",),
        "makes a HorizontalPodAutoscaler and decides between none and one: triggers `prometheus`, `nats-jetstream`, `metrics-api` (asked "
        "at the server that they name, at `pollingInterval`, or at each look of the autoscaler where that is sooner and not "
        "`useCachedMetrics`; one that names no server is handed in as a MetricReading `s0-prometheus` and so on, with the label "
        "`scaledobject.keda.sh/name`), `cron`, `cpu`, `memory`; `authenticationRef`; activation, `pollingInterval`, `cooldownPeriod`, "
        "`initialCooldownPeriod`, `idleReplicaCount`, `fallback` with its behaviors, pauses by annotation. A source that says nothing, or "
        "no number, is a failure and never zero; no series are zero only where `ignoreNullValues` is stated as `true`. On Kubernetes its "
        "controller is told of schedules and fallbacks, too (docs/adr/0042). With `tidegate.dev/target` a goal sizes the target, without "
        "an autoscaler (docs/autoscaling.md)",
        "triggers of other types, `scalingModifiers`, `restoreToOriginalReplicaCount`",
    ),
    Support(
        "TriggerAuthentication.keda.sh",
        ("inference_autoscaler", "cluster_gateway"),
        "lets triggers in at their sources: `secretTargetRef`, for `authModes` `bearer`, `basic`, `tls` and `custom`; the values go from "
        "the gateway to who asks the source, and nowhere else",
        "`env`, `configMapTargetRef`, `podIdentity` and vaults",
    ),
    Support(
        "ClusterTriggerAuthentication.keda.sh",
        ("inference_autoscaler", "cluster_gateway"),
        "like a TriggerAuthentication, for triggers of all namespaces; its Secrets are those of the namespace `keda`",
        "`env`, `configMapTargetRef`, `podIdentity` and vaults",
    ),
    Support(
        "InferenceService.serving.kserve.io",
        ("inference_autoscaler", "inference_gateway"),
        "predictor, transformer and explainer, by containers of their own, by a model and a runtime, or by one of KServe's older "
        "blocks (`predictor.triton` with `modelRepository` too, which is read as `storageUri`); models are fetched by an init container "
        "as KServe has it, or mounted (`pvc://`); `logger` and `batcher` by KServe's agent before the server. Serverless: revisions, "
        "sized as Knative's autoscaler does by `concurrency` or `rps` (stable and panic windows, `containerConcurrency`, Knative's "
        "annotations for targets, windows, initial and activation scale, delays, to zero and back; the load is handed in as "
        "MetricReadings of the service), or by what users should feel (`tidegate.dev/target`, docs/autoscaling.md); "
        "canaries by `canaryTrafficPercent`, or in steps by the annotations `tidegate.dev/rollout` "
        "(docs/adr/0038), with promotion and taking back by what revisions answered; never to a revision that is not ready. Standard "
        "(`RawDeployment`): Deployment, Service and HorizontalPodAutoscaler or ScaledObject by KServe's names, `behavior` honoured, "
        "`canary` with shares, or sized by `tidegate.dev/target`, too; requests by host or model, in exact shares, held while no replica is ready, `containerConcurrency`, "
        "`timeout` (services/inference_gateway); classes `hpa`, `keda`, `external`, `none`. `serving.kserve.io/stop`. "
        "On Kubernetes, where its own parts carry requests, an HTTPRoute with weights, an Ingress or a Service of the type "
        "LoadBalancer (docs/serving.md); where KServe's own controller runs, `inference_services: false` leaves them to it",
        "refused: `workerSpec`, the mode ModelMesh; without effect: `batcher.timeout`, `scaleMetricType`, a logger's "
        "`metadataAnnotations`",
    ),
    Support(
        "InferenceGraph.serving.kserve.io",
        ("inference_autoscaler",),
        "a router of its own (Deployment, Service and HorizontalPodAutoscaler of its name) that takes each request from `root` through "
        "`Sequence`, `Switch`, `Ensemble` and `Splitter`; steps by `serviceName`, `serviceUrl` or `nodeName`, with `data`, `condition` "
        "(paths of GJSON without modifiers other than `@this`), `dependency` and `weight`; `resources`, bounds and places of the "
        "router, `timeout`, `routerTimeouts.serviceClient`, `serving.kserve.io/stop`. A graph that comes back to a node is refused",
        "to zero: a router is one pod at least; `routerTimeouts` of its own server",
    ),
    Support(
        "ServingRuntime.serving.kserve.io",
        ("inference_autoscaler",),
        "runs the models whose format, version and protocol it lists; those of the namespace go before those of the cluster, then by "
        "priority, the newest first, by name; `runtime` and `runtimeVersion` of a model; labels, annotations and placeholders such as "
        "`{{.Name}}`",
        "endpoints, `replicas`; one with `multiModel` or `workerSpec` is never given to a model, and says so",
    ),
    Support(
        "ClusterServingRuntime.serving.kserve.io",
        ("inference_autoscaler",),
        "like a ServingRuntime, for models of all namespaces",
        "as for a ServingRuntime",
    ),
    Support(
        "MetricReading.tidegate.dev",
        ("inference_autoscaler",),
        "a sample: of a pod (`cpu`, `memory`, or a name of its own; with the label `container` of one container), of another object, "
        "or, without `describedObject`, of something outside the cluster. It stands until it is replaced; without `value` none is "
        "known, which is not zero, and `message` says why",
    ),
    Support(
        "NodeSLO.slo.koordinator.sh",
        ("slo_controller", "node_agent"),
        "made for each node from the strategies of `koordinator-system/slo-controller-config`; one that a user wrote, or changed, "
        "wins. Its node holds best effort to what is left by quota or CPU set, lets pods burst, protects memory, pins pods, limits "
        "disks and asks for evictions",
    ),
    Support(
        "PodGroup.scheduling.k8s.io",
        ("gang_scheduler",),
        "Kubernetes' own gangs (1.36, `schedulingGroup.podGroupName` of pods): `gang.minCount`, `basic`, `priorityClassName`; "
        "condition `PodGroupScheduled`",
        "`disruptionMode`, `resourceClaims`, `schedulingConstraints`",
    ),
    Support(
        "Workload.scheduling.k8s.io",
        ("admission",),
        "checked and kept: templates for the controllers that make PodGroups",
    ),
    *(
        Support(f"PodGroup.{group}", ("gang_scheduler",), "`minMember`, `scheduleTimeoutSeconds`", "`minResources`")
        for group in ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
    ),
    Support(
        "ElasticQuota.scheduling.sigs.k8s.io",
        ("queue_manager", "gang_scheduler"),
        "the tree of quotas: min, max, shared weight, lending, namespaces, `tidegate.dev/placement`; "
        "pods and gangs that name one are charged to it",
    ),
    Support(
        "ClusterQueue.kueue.x-k8s.io",
        ("queue_manager",),
        "quota by flavor, borrowing and lending limits, flavorFungibility, preemption, fairSharing, queueingStrategy, "
        "namespaceSelector, stopPolicy, admissionChecks, admissionScope, the annotation `tidegate.dev/placement`; its status",
    ),
    Support(
        "LocalQueue.kueue.x-k8s.io",
        ("queue_manager",),
        "clusterQueue, stopPolicy, fairSharing (weight of past use); bare pods and jobs that name it get quota before they "
        "start; its status",
    ),
    Support("Cohort.kueue.x-k8s.io", ("queue_manager",), "the tree of cohorts, their own quota, fairSharing"),
    Support(
        "Workload.kueue.x-k8s.io",
        ("queue_manager",),
        "one is made for every pod, gang and Job in a LocalQueue; one that names no job holds quota itself: podSets with "
        "minCount, queueName, priority, priorityClassRef, active, maximumExecutionTimeSeconds, reclaimablePods; conditions "
        "QuotaReserved, Admitted, PodsReady, Evicted, Preempted, Finished; requeueState; answers of checks by the annotation "
        "`checks.tidegate.dev/<name>`",
        "topologyRequest, preemptionGates, cluster names",
    ),
    Support(
        "AdmissionCheck.kueue.x-k8s.io",
        ("queue_manager",),
        "quota is held and nothing starts before every check of the ClusterQueue is answered Ready; Retry backs off, Rejected "
        "deactivates",
        "controllers of checks: whoever answers is a program of the user",
    ),
    Support(
        "ResourceFlavor.kueue.x-k8s.io",
        ("queue_manager",),
        "nodeLabels, nodeTaints and tolerations, which the pods with its quota get; topologyName",
    ),
    Support(
        "Topology.kueue.x-k8s.io",
        ("queue_manager",),
        "levels; of pod sets the annotations podset-required-, -preferred-, -unconstrained-topology, "
        "podset-slice-required-topology, podset-slice-size, podset-group-name",
    ),
    Support(
        "WorkloadPriorityClass.kueue.x-k8s.io", ("queue_manager",), "value, by the label kueue.x-k8s.io/priority-class"
    ),
    Support(
        "NodeResourceTopology.topology.node.k8s.io",
        ("gang_scheduler", "slo_controller"),
        "the annotations that describe a node's CPUs, kubelet's own CPUs and options; zones, which are told what batch work may have "
        "of them; topology policies",
        "costs and attributes",
    ),
    Support(
        "Numatopology.nodeinfo.volcano.sh",
        ("gang_scheduler",),
        "the CPUs of a node, and those that are reserved",
        "the kubelet's policies, what it says is allocatable: the scheduler keeps its own books",
    ),
    Support(
        "ClusterColocationProfile.config.koordinator.sh",
        ("admission",),
        "laid over new pods that it selects, and, where it draws no lots, over the templates of those who make pods",
        "what the labels ask of a node",
    ),
    Support(
        "HyperNode.topology.volcano.sh",
        ("gang_scheduler",),
        "tiers; members by exact name, pattern and label; hard and soft topology of gangs and sub-gangs",
    ),
    Support(
        "ClusterNetworkTopology.scheduling.koordinator.sh",
        ("gang_scheduler",),
        "the layers that labels of nodes make, for the annotation `network-topology-spec` of gangs (`MustGather`, `PreferGather`)",
        "`network-topology-index`; its status",
    ),
    Support(
        "ResourceClaim.resource.k8s.io",
        ("gang_scheduler", "cluster_gateway"),
        "devices that are chosen with the binding and given back when the last pod has ended: counts, `All`, `firstAvailable`, "
        "CEL selectors, `matchAttribute` and `distinctAttribute`, tolerations, `adminAccess`, shared claims, `capacity` of devices "
        "that several claims share; opaque `config` is "
        "handed on",
        "binding conditions, `config` of classes; node agents of this product prepare no devices of drivers",
    ),
    Support("ResourceClaimTemplate.resource.k8s.io", ("cluster_gateway",), "a claim for each pod, gone with its end"),
    Support("DeviceClass.resource.k8s.io", ("gang_scheduler",), "selectors", "`config`, `extendedResourceName`"),
    Support(
        "ResourceSlice.resource.k8s.io",
        ("gang_scheduler",),
        "pools and generations, attributes, capacity (`allowMultipleAllocations`, "
        "`requestPolicy`), `bindsToNode`, taints, shared counters, devices of one node, of some or of all",
    ),
    Support(
        "Device.scheduling.koordinator.sh",
        ("cluster_gateway", "gang_scheduler"),
        "the cards and RDMA devices of a node, their health, NUMA nodes and PCIe switches; made from what node agents beside kubelets "
        "say; `nvidia.com/mig-<profile>` among the resources of a card: the instances that it is split into or, where these do not "
        "fit together, can be split into; the table and the policy of GPU partitions",
        "virtual functions, allocations in its status",
    ),
)

BY_KIND = {support.kind: support for support in SUPPORT}

CHECKED_ONLY: dict[str, str] = {}
"""Kinds that admission completes and checks, and that nobody acts on."""
