"""What an InferenceService lives in."""

from dataclasses import dataclass

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from kube import Store


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The objects, the pods by their labels, and what an operator says of sizes by requests."""

    store: Store
    pods: PodIndex
    configuration: KnativeConfiguration
