"""What an operator chose when the service was started."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AutoscalerPolicy:
    """``horizontal`` says whether HorizontalPodAutoscalers are acted on here; not where the cluster has a controller of them."""

    horizontal: bool = True
