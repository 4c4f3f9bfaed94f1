"""What every kind comes to: who acts on it, what of it is honoured, what is taken and has no effect.

`docs/supported-kinds.md` is made from it. The tests hold it against the kinds that the code names; kinds that nobody
acts on need no entry.
"""

from document_core_kinds import CORE
from document_job_kinds import JOBS
from document_kind import Support
from document_serving_kinds import SERVING

SUPPORT = (
    *CORE,
    *JOBS,
    *SERVING,
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
