"""What this service is to the others."""

from chassis import Role
from slo_controller.domain.core import concerns

ROLE = Role("slo_controller", queries=("explain", "settings"), interest=concerns)
