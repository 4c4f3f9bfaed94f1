"""HorizontalPodAutoscalers: autoscaling/v2, to the replica."""
