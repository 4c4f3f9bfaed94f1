"""Goals of HorizontalPodAutoscalers and ScaledObjects: their targets are sized by what users should feel."""
