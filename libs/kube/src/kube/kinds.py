"""Every kind that Tidegate knows: group, version, plural and short names, and whether it lives in a namespace."""

from collections.abc import Iterator
from dataclasses import dataclass

from kube.keys import Key, Manifest, kind_id


@dataclass(frozen=True, slots=True)
class KindInfo:
    """One kind. ``id`` is the kind with its group as in ``Key.kind``."""

    kind: str
    group: str
    version: str
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True

    @property
    def id(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def is_builtin(self) -> bool:
        """Whether every Kubernetes cluster has the kind; the others come by a CustomResourceDefinition."""
        if "." not in self.group:
            return True
        return self.group in _BUILTIN_GROUPS

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class UnknownKind(ValueError):
    """A kind that Tidegate does not serve."""


_BUILTIN_GROUPS = frozenset(
    f"{name}.k8s.io" for name in ("scheduling", "networking", "storage", "node", "resource", "rbac.authorization")
)
"""Groups of Kubernetes itself with a dot in their name."""

_TABLE = """
Pod v1 pods po
Node v1 nodes no -
Namespace v1 namespaces ns -
ConfigMap v1 configmaps cm
Secret v1 secrets
Service v1 services svc
ServiceAccount v1 serviceaccounts sa
Event v1 events ev
PersistentVolume v1 persistentvolumes pv -
PersistentVolumeClaim v1 persistentvolumeclaims pvc
ResourceQuota v1 resourcequotas quota
Endpoints v1 endpoints ep
Deployment apps/v1 deployments deploy
ReplicaSet apps/v1 replicasets rs
StatefulSet apps/v1 statefulsets sts
DaemonSet apps/v1 daemonsets ds
Job batch/v1 jobs
CronJob batch/v1 cronjobs cj
PodDisruptionBudget policy/v1 poddisruptionbudgets pdb
PriorityClass scheduling.k8s.io/v1 priorityclasses pc -
NetworkPolicy networking.k8s.io/v1 networkpolicies netpol
Ingress networking.k8s.io/v1 ingresses ing
HorizontalPodAutoscaler autoscaling/v2 horizontalpodautoscalers hpa
StorageClass storage.k8s.io/v1 storageclasses sc -
RuntimeClass node.k8s.io/v1 runtimeclasses - -
NodeResourceTopology topology.node.k8s.io/v1alpha1 noderesourcetopologies - -
ResourceClaim resource.k8s.io/v1 resourceclaims
ResourceClaimTemplate resource.k8s.io/v1 resourceclaimtemplates
ResourceSlice resource.k8s.io/v1 resourceslices -
DeviceClass resource.k8s.io/v1 deviceclasses -
Job batch.volcano.sh/v1alpha1 jobs vcjob,vj
CronJob batch.volcano.sh/v1alpha1 cronjobs vccronjob
PodGroup scheduling.volcano.sh/v1beta1 podgroups pg
Queue scheduling.volcano.sh/v1beta1 queues q -
Command bus.volcano.sh/v1alpha1 commands
JobFlow flow.volcano.sh/v1alpha1 jobflows jf
JobTemplate flow.volcano.sh/v1alpha1 jobtemplates jt
HyperNode topology.volcano.sh/v1alpha1 hypernodes hn -
Numatopology nodeinfo.volcano.sh/v1alpha1 numatopologies numatopo -
TFJob kubeflow.org/v1 tfjobs
PyTorchJob kubeflow.org/v1 pytorchjobs
XGBoostJob kubeflow.org/v1 xgboostjobs
PaddleJob kubeflow.org/v1 paddlejobs
JAXJob kubeflow.org/v1 jaxjobs
MPIJob kubeflow.org/v2beta1 mpijobs
TrainJob trainer.kubeflow.org/v1alpha1 trainjobs
TrainingRuntime trainer.kubeflow.org/v1alpha1 trainingruntimes
ClusterTrainingRuntime trainer.kubeflow.org/v1alpha1 clustertrainingruntimes - -
JobSet jobset.x-k8s.io/v1alpha2 jobsets
PodGroup scheduling.x-k8s.io/v1alpha1 podgroups
PodGroup scheduling.sigs.k8s.io/v1alpha1 podgroups
PodGroup scheduling.k8s.io/v1alpha2 podgroups
ElasticQuota scheduling.sigs.k8s.io/v1alpha1 elasticquotas eq
Reservation scheduling.koordinator.sh/v1alpha1 reservations - -
Device scheduling.koordinator.sh/v1alpha1 devices - -
ClusterNetworkTopology scheduling.koordinator.sh/v1alpha1 clusternetworktopologies - -
PodMigrationJob scheduling.koordinator.sh/v1alpha1 podmigrationjobs pmj -
ClusterColocationProfile config.koordinator.sh/v1alpha1 clustercolocationprofiles - -
NodeMetric slo.koordinator.sh/v1alpha1 nodemetrics - -
NodeSLO slo.koordinator.sh/v1alpha1 nodeslos - -
Recommendation analysis.koordinator.sh/v1alpha1 recommendations
ClusterQueue kueue.x-k8s.io/v1beta2 clusterqueues cq -
LocalQueue kueue.x-k8s.io/v1beta2 localqueues lq
Cohort kueue.x-k8s.io/v1beta2 cohorts - -
ResourceFlavor kueue.x-k8s.io/v1beta2 resourceflavors flavor -
Workload kueue.x-k8s.io/v1beta2 workloads wl
Workload scheduling.k8s.io/v1alpha2 workloads
WorkloadPriorityClass kueue.x-k8s.io/v1beta2 workloadpriorityclasses - -
Topology kueue.x-k8s.io/v1beta2 topologies - -
AdmissionCheck kueue.x-k8s.io/v1beta2 admissionchecks - -
InferenceService serving.kserve.io/v1beta1 inferenceservices isvc
ServingRuntime serving.kserve.io/v1alpha1 servingruntimes
ClusterServingRuntime serving.kserve.io/v1alpha1 clusterservingruntimes - -
InferenceGraph serving.kserve.io/v1alpha1 inferencegraphs ig
HTTPRoute gateway.networking.k8s.io/v1 httproutes
ScaledObject keda.sh/v1alpha1 scaledobjects so
TriggerAuthentication keda.sh/v1alpha1 triggerauthentications ta
ClusterTriggerAuthentication keda.sh/v1alpha1 clustertriggerauthentications cta -
PipelineRun tidegate.dev/v1 pipelineruns
MetricReading tidegate.dev/v1 metricreadings
Experiment kubeflow.org/v1beta1 experiments
Trial kubeflow.org/v1beta1 trials
Suggestion kubeflow.org/v1beta1 suggestions
"""

STATED = frozenset(["NodeMetric.slo.koordinator.sh"])
"""Kinds of which the status is all that they say: who writes such an object says its status, too, each time."""


def _read(table: str) -> dict[str, KindInfo]:
    kinds: dict[str, KindInfo] = {}
    for line in table.strip().splitlines():
        kind, api, plural, *rest = line.split()
        group, _, version = api.rpartition("/")
        short = tuple(name for name in (rest[0].split(",") if rest else []) if name != "-")
        info = KindInfo(kind, group, version, plural, short, namespaced=rest[-1:] != ["-"])
        kinds[info.id] = info
    return kinds


KINDS: dict[str, KindInfo] = _read(_TABLE)

# Where a bare kind is known to more than one group, a scenario or a command line means this one.
PREFERRED = {
    "Workload": "Workload.kueue.x-k8s.io",
    "Job": "Job.batch.volcano.sh",
    "PodGroup": "PodGroup.scheduling.volcano.sh",
    "CronJob": "CronJob.batch.volcano.sh",
}


def api_version_of(kind: str) -> str:
    """The apiVersion under which objects of the kind with group ``kind`` are served."""
    info = KINDS.get(kind)
    return info.api_version if info else kind.partition(".")[2]


def is_namespaced(kind: str) -> bool:
    """Whether objects of the kind with group live in a namespace; kinds unknown here are taken to."""
    info = KINDS.get(kind)
    return info.namespaced if info else True


def key_of(manifest: Manifest) -> Key:
    """The key of the object that ``manifest`` describes; a namespace left out is ``default``.

    Raises UnknownKind when apiVersion or kind is missing or no kind of Tidegate's.
    """
    kind = kind_id(str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or ""))
    info = KINDS.get(kind)
    if info is None:
        raise UnknownKind(
            f"apiVersion {manifest.get('apiVersion')!r}, kind {manifest.get('kind')!r}: not a kind that Tidegate serves"
        )
    metadata = manifest.get("metadata") or {}
    namespace = (metadata.get("namespace") or "default") if info.namespaced else ""
    return Key(kind, namespace, str(metadata.get("name") or ""))


def find_kind(word: str) -> KindInfo:
    """The kind that a user means by ``word``: ``job``, ``vcjobs``, ``pg``, ``jobs.batch``; raises UnknownKind."""
    found = _BY_WORD.get(word.lower())
    if found is None:
        raise UnknownKind(f"{word!r} is not a kind that Tidegate serves; `tidegate api-resources` lists them")
    return found


def _words(info: KindInfo) -> Iterator[str]:
    for name in (info.kind.lower(), info.plural, *info.short):
        yield name
        if info.group:
            yield f"{name}.{info.group}"


def _by_word() -> dict[str, KindInfo]:
    """Every word for every kind; of kinds that share one, the preferred kind has it, else the first."""
    found: dict[str, KindInfo] = {}
    for info in (*(KINDS[kind] for kind in PREFERRED.values()), *KINDS.values()):
        for word in _words(info):
            found.setdefault(word, info)
    return found


_BY_WORD = _by_word()
