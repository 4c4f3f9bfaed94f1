"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``acts``: whether sizes are decided here; not on a cluster that has controllers of its own for them.

    ``knative`` is JSON, with the keys of Knative's ConfigMap config-autoscaler. ``sampling`` is JSON, too: ``prometheus``, the
    address of one, ``rules`` and ``externalRules`` for it, in the words of Prometheus' adapter for Kubernetes, and ``scrape``,
    whether pods are asked themselves. A source has ``source_timeout`` for its answer.
    """

    acts: bool = True
    knative: str = "{}"
    sampling: str = "{}"
    source_timeout: str = "5s"
