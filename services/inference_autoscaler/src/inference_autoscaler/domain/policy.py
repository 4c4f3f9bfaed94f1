"""What an operator chose when the service was started."""

from dataclasses import dataclass, field

from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from kube import Manifest


@dataclass(frozen=True, slots=True)
class AutoscalerPolicy:
    """``acts`` says whether sizes are decided here: not on a cluster that has controllers of its own for them."""

    acts: bool = True
    knative: KnativeConfiguration = field(default_factory=KnativeConfiguration)

    @classmethod
    def of(cls, knative: Manifest, *, acts: bool = True) -> "AutoscalerPolicy":
        """``knative`` has the keys of Knative's ConfigMap config-autoscaler. Raises ValueError for what makes no sense."""
        return cls(acts, KnativeConfiguration.of(knative))
