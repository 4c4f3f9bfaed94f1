"""What this service is to the others."""

from chassis import Role
from job_controller.domain.core import concerns

ROLE = Role("job_controller", interest=concerns)
