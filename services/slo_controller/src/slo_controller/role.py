"""What this service is to the others."""

from chassis import Role
from slo_controller.domain.core import concerns

HISTORY = 1_000
"""Each commit of a minute holds all that is remembered of past use, which is a kilobyte for each node and workload."""
ROLE = Role("slo_controller", queries=("explain", "settings"), interest=concerns, history=HISTORY)
