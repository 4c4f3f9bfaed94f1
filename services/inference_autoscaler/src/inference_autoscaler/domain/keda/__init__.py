"""ScaledObjects: KEDA's triggers, and its way from zero to one and back."""
