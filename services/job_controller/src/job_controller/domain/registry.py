"""Every kind of job that there is, in one table."""

from collections.abc import Callable

from job_controller.domain.kubeflow import KINDS as KUBEFLOW_KINDS
from job_controller.domain.reconcile import JobKind
from job_controller.domain.volcano.command import StrayCommands
from job_controller.domain.volcano.cronjob import VolcanoCronJobs
from job_controller.domain.volcano.job import VolcanoJobs
from job_controller.domain.volcano.jobflow import JobFlows
from job_controller.domain.volcano.jobtemplate import JobTemplates

VOLCANO_KINDS: tuple[Callable[[], JobKind], ...] = (
    VolcanoJobs,
    VolcanoCronJobs,
    JobFlows,
    JobTemplates,
    StrayCommands,
)


def all_kinds() -> list[JobKind]:
    """One fresh instance of every kind, with nothing remembered."""
    return [make() for make in (*VOLCANO_KINDS, *KUBEFLOW_KINDS)]
