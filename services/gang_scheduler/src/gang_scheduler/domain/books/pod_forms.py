"""What pods are to the scheduler: their form, by what their specs, their queues and the quota that they were granted say."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.devices.device_needs import Traits, traits_of
from gang_scheduler.domain.dra.claim_book import ClaimBook
from gang_scheduler.domain.nodes.revocable_zones import RevocableZones
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.pods.pod_shape import PodForm, ShapeCatalog
from gang_scheduler.domain.queues.queue_nodes import QueueNodes
from gang_scheduler.domain.queues.quota_admission import Grant
from gang_scheduler.domain.terms.revocable_pods import LENT, is_revocable, put_last
from kube import Object, are_alike
from kube.bindings import template_of
from kube.runtime_classes import RuntimeClasses


@dataclass(slots=True)
class PodForms:
    """Makes forms of ``catalog``. ``queue_nodes`` says which nodes are for the pods of which queue."""

    catalog: ShapeCatalog
    claim_book: ClaimBook
    queue_nodes: QueueNodes
    zones: RevocableZones
    runtime_classes: RuntimeClasses = field(default_factory=RuntimeClasses)

    def of(self, pod: Object, queue: str, grant: Grant | None) -> PodForm:
        """The form of a pod in ``queue``, on the nodes of the quota that it was granted."""
        spec, traits = pod.spec, traits_of_pod(pod)
        if "resourceClaims" in spec:
            traits = traits._replace(claims=self.claim_book.text_of(pod))
        demands = self.queue_nodes.demands(queue) if not traits.load.exempt else None
        lent = self.is_lent(pod)
        if lent:
            demands = LENT.beside(demands)
        if demands is not None:
            traits = traits._replace(demands=demands)
        if "runtimeClassName" in spec and (unmet := self.runtime_classes.objection(spec)):
            traits = traits._replace(unmet=unmet)
        form = self.catalog.form_of(spec, pod.namespace, pod.labels, traits, grant)
        return form._replace(priority=put_last(form.priority)) if lent else form

    def is_lent(self, pod: Object) -> bool:
        """Whether the pod goes to nodes that are lent at some hours, which there are."""
        return bool(self.zones.windows) and is_revocable(pod)


def traits_of_pod(pod: Object) -> Traits:
    """What labels, annotations and owners of a pod say about its place within a node; its resource claims are not in it."""
    owners = pod.metadata.get("ownerReferences") or ()
    return traits_of(pod.labels, pod.annotations, int(pod.spec.get("priority") or 0), owners)


def go_on_alike(changing: Sequence[tuple[PodRecord, Object]]) -> bool:
    """Whether nothing but the statuses of pods that are alike changed, and that they have their nodes now."""
    record, new = changing[0]
    old = record.pod
    return (
        bool(new.spec.get("nodeName"))
        and new.metadata is old.metadata
        and template_of(new.body) is template_of(old.body)
        and "resourceClaims" not in new.spec
        and are_alike([other.pod for other, _ in changing])
    )
