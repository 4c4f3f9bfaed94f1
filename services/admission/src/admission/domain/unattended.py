"""Kinds that are stored for their users but that no part of the system acts on: said to whoever applies one."""

_KINDS = (
    "PipelineRun.tidegate.dev",
    "NetworkPolicy.networking.k8s.io",
    "Ingress.networking.k8s.io",
    "HTTPRoute.gateway.networking.k8s.io",
    "Experiment.kubeflow.org",
    "Trial.kubeflow.org",
    "Suggestion.kubeflow.org",
)

UNATTENDED = frozenset(_KINDS)


def unattended(kind: str) -> list[str]:
    """The warning for a kind that nobody acts on."""
    if kind not in UNATTENDED:
        return []
    return [f"objects of kind {kind.partition('.')[0]} are stored, but no part of this system acts on them"]
