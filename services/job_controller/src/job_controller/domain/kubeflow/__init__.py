"""The jobs of Kubeflow: the five v1 kinds, MPIJob, TrainJob, and the JobSet that a TrainJob is made of."""

from collections.abc import Callable
from functools import partial

from job_controller.domain.kubeflow.frameworks import FRAMEWORKS
from job_controller.domain.kubeflow.jobset.job_set import JobSets
from job_controller.domain.kubeflow.mpi.job import mpi_jobs
from job_controller.domain.kubeflow.training_job import training_jobs
from job_controller.domain.kubeflow.trainjob.train_job import TrainJobs
from job_controller.domain.reconcile import JobKind

TRAINING_KINDS: tuple[Callable[[], JobKind], ...] = tuple(partial(training_jobs, one) for one in FRAMEWORKS)
KINDS: tuple[Callable[[], JobKind], ...] = (*TRAINING_KINDS, mpi_jobs, JobSets, TrainJobs)
