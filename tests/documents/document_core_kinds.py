"""The kinds of Kubernetes itself."""

from document_kind import Support

CORE = (
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
)
