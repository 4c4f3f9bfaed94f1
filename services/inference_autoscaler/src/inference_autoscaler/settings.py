"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.keda.scaled_object import SCALED_OBJECT
from inference_autoscaler.domain.serving.inference_service import SERVICE


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``acts``: whether anything is decided here. Kind by kind that can be left to others, who run in the same cluster:
    ``inference_services``, ``scaled_objects``, and ``horizontal``, HorizontalPodAutoscalers.

    ``routes`` is JSON: ``by``, which kind of object leads requests from outside to each service (HTTPRoute, Ingress, LoadBalancer),
    ``gateway`` (NAMESPACE/NAME) for HTTPRoutes, ``domain`` and ``ingressClass``.

    ``images`` is JSON: ``storageInitializer``, ``agent`` and ``graphRouter``, the images of the containers that pods get besides their
    own; ``image_registry`` goes before the names of those of Tidegate that are not said.

    ``knative`` is JSON, with the keys of Knative's ConfigMap config-autoscaler. ``sampling`` is JSON, too: ``prometheus``, the
    address of one, ``rules`` and ``externalRules`` for it, in the words of Prometheus' adapter for Kubernetes, and ``scrape``,
    whether pods are asked themselves. A source has ``source_timeout`` for its answer.
    """

    acts: bool = True
    horizontal: bool = True
    scaled_objects: bool = True
    inference_services: bool = True
    routes: str = "{}"
    images: str = "{}"
    image_registry: str = ""
    knative: str = "{}"
    sampling: str = "{}"
    source_timeout: str = "5s"

    @property
    def left(self) -> list[str]:
        """The kinds on which others decide."""
        kinds = {SERVICE: self.inference_services, SCALED_OBJECT: self.scaled_objects, AUTOSCALER: self.horizontal}
        return [kind for kind, is_ours in kinds.items() if not is_ours]
