"""What this service is to the others."""

from chassis import Role
from inference_autoscaler.domain.core import concerns

ROLE = Role("inference_autoscaler", queries=("explain", "settings"), interest=concerns)
"""How many replicas, and which revision gets what share?"""
