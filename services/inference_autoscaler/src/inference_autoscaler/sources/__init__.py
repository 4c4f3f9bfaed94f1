"""Asks for the samples that autoscalers go by, and hands them in; the core knows nothing of it but the samples."""
