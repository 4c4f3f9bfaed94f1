"""What a scenario asks of an inference service: its size, and how requests are shared among its revisions."""

from kube import Object, Store

INFERENCE = "InferenceService.serving.kserve.io"


def inference_replicas(service: Object, store: Store) -> int:
    """The replicas that are wanted of its predictor, all revisions together."""
    owned = (child for child in store.owned_by(service.uid) if child.kind == "Deployment.apps")
    return sum(int(child.spec.get("replicas") or 0) for child in owned)


def traffic_of(service: Object | None) -> dict[str, int]:
    """The percentage of each revision of its predictor that has a share."""
    components = service.status.get("components") or {} if service is not None else {}
    listed = (components.get("predictor") or {}).get("traffic") or ()
    return {str(one["revisionName"]): int(one["percent"]) for one in listed}
