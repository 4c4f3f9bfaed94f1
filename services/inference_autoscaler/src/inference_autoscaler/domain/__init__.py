"""The pure core of inference_autoscaler: samples, autoscalers, sizes."""
