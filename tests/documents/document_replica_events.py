"""The decisions about how many replicas there are, and who gets what share."""

from document_event import Event, Section


def _size(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "inference_autoscaler", meaning, carries)


REPLICAS = (
    Section(
        "How many replicas, and which revision gets what share",
        (
            _size(
                "ReplicasScaled",
                "A workload gets another size, by what its autoscaler's metrics, its triggers, or the load of its service ask for.",
                "CREATE HorizontalPodAutoscaler",
                "PATCH HorizontalPodAutoscaler",
                "PATCH Deployment",
                "PATCH StatefulSet",
                "PATCH ReplicaSet",
                "DELETE Deployment",
                "DELETE Service",
                "PATCH HTTPRoute",
                "PATCH Ingress",
                "PATCH Service",
                "STATUS subject",
            ),
            _size(
                "InferenceServiceMade",
                "An inference service gets what it consists of: a revision of a component, or in standard mode a Deployment, a "
                "Service and what scales it.",
                "CREATE Deployment",
                "CREATE Service",
                "CREATE HorizontalPodAutoscaler",
                "CREATE ScaledObject",
                "CREATE HTTPRoute",
                "CREATE Ingress",
                "PATCH Deployment",
                "PATCH Service",
                "PATCH HorizontalPodAutoscaler",
                "PATCH ScaledObject",
                "PATCH HTTPRoute",
                "PATCH Ingress",
                "DELETE Deployment",
                "DELETE Service",
                "DELETE HorizontalPodAutoscaler",
                "DELETE ScaledObject",
                "DELETE HTTPRoute",
                "DELETE Ingress",
                "STATUS subject",
            ),
            _size(
                "TrafficSplit",
                "A revision is ready, taken a step further or taken back, or another share is wanted: who gets how much of the "
                "requests, and by which figures.",
                "CREATE HTTPRoute",
                "CREATE Ingress",
                "CREATE Service",
                "PATCH HTTPRoute",
                "PATCH Ingress",
                "PATCH Service",
                "PATCH Deployment",
                "DELETE Deployment",
                "DELETE Service",
                "DELETE HorizontalPodAutoscaler",
                "DELETE ScaledObject",
                "DELETE HTTPRoute",
                "DELETE Ingress",
                "STATUS subject",
            ),
            _size(
                "ServingExplained",
                "An inference service says how it is, and why; a stopped one gives up what it consists of.",
                "DELETE Deployment",
                "DELETE Service",
                "DELETE HorizontalPodAutoscaler",
                "DELETE ScaledObject",
                "DELETE HTTPRoute",
                "DELETE Ingress",
                "STATUS subject",
            ),
            _size(
                "ScalingExplained",
                "The size stays, and the autoscaler says by what, or why nothing can be said.",
                "CREATE HorizontalPodAutoscaler",
                "PATCH HorizontalPodAutoscaler",
                "STATUS subject",
            ),
        ),
    ),
)
