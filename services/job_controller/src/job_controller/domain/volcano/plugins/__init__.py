"""The plugins of Volcano Jobs: each adds objects to a job, and things to the pods of a task or to one pod."""

from job_controller.domain.volcano.plugins.distributed import ENV, HCCLRANK, MPI, PYTORCH, TENSORFLOW
from job_controller.domain.volcano.plugins.injection import Injection, Plugin, Site, together
from job_controller.domain.volcano.plugins.ray import RAY
from job_controller.domain.volcano.plugins.ssh import SSH
from job_controller.domain.volcano.plugins.svc import SVC
from job_controller.domain.volcano.spec import JobSpec, Task
from kube import Manifest, Object

PLUGINS: dict[str, Plugin] = {
    "env": ENV,
    "hcclrank": HCCLRANK,
    "mpi": MPI,
    "pytorch": PYTORCH,
    "ray": RAY,
    "ssh": SSH,
    "svc": SVC,
    "tensorflow": TENSORFLOW,
}


def plugin_objects(job: Object, spec: JobSpec) -> list[Manifest]:
    """The objects that the job's plugins want beside its pods."""
    return [item for plugin, site in _active(job, spec) for item in plugin.objects(site)]


def for_task(job: Object, spec: JobSpec, task: Task) -> Injection:
    """What every pod of the task gets."""
    return together([plugin.for_task(site, task) for plugin, site in _active(job, spec)])


def for_pod(job: Object, spec: JobSpec, task: Task, index: int) -> Injection:
    """What one pod of the task gets besides."""
    return together([plugin.for_pod(site, task, index) for plugin, site in _active(job, spec)])


def _active(job: Object, spec: JobSpec) -> list[tuple[Plugin, Site]]:
    named = [(PLUGINS.get(name), Site(job, spec, arguments)) for name, arguments in spec.plugins.items()]
    return [(plugin, site) for plugin, site in named if plugin is not None]
