"""JobTemplates: nothing is made for them; their status lists the jobs that were made from them."""

from job_controller.domain.reconcile import Actions, View
from job_controller.domain.volcano.spec import JOB
from kube import Decision, Event, Key, Mutation, Object, Verb
from kube.words import counted, verb

TEMPLATE = "JobTemplate.flow.volcano.sh"
BY_TEMPLATE = "volcano.sh/createdByJobTemplate"


class JobTemplates:
    """The kind JobTemplate of Volcano."""

    kind = TEMPLATE
    watches: tuple[str, ...] = (JOB,)

    def observe(self, job: Object, event: Event, now: int) -> None:
        """A template has no edges."""

    def forget(self, uid: str) -> None:
        """Nothing is remembered of a template."""

    def concerned(self, event: Event, view: View) -> list[Key]:
        """The template that a job was made from, when the job has come or gone."""
        namespace, _, name = event.object.labels.get(BY_TEMPLATE, "").partition(".")
        if not name or (event.old is not None and event.new is not None):
            return []
        return [Key(TEMPLATE, namespace, name)]

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """List the jobs that carry the template's mark."""
        mark = f"{job.namespace}.{job.name}"
        made = [item.name for item in view.in_namespace(JOB, job.namespace) if item.labels.get(BY_TEMPLATE) == mark]
        names = sorted(made)
        if names == (job.status.get("jobDependsOnList") or []):
            return Actions()
        mutation = Mutation(Verb.STATUS, job.key, uid=job.uid, patch={"jobDependsOnList": names})
        message = f"{counted(len(names), 'job')} {verb(len(names), 'was', 'were')} made from {job.name}"
        return Actions((Decision("TemplateUsed", job.key, job.uid, "JobsListed", message, (mutation,)),))
