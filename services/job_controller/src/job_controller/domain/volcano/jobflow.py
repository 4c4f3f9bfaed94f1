"""JobFlows: Volcano Jobs from templates, each made when those that it depends on have come far enough."""

from dataclasses import dataclass

from job_controller.domain.reconcile import Actions, View
from job_controller.domain.status_patch import changes
from job_controller.domain.volcano.children import child_jobs, ended_at, has_ended, phase_of
from job_controller.domain.volcano.flow_probes import what_is_missing, with_probes
from job_controller.domain.volcano.jobtemplate import BY_TEMPLATE, TEMPLATE
from job_controller.domain.volcano.ownership import owned
from job_controller.domain.volcano.spec import JOB
from kube import Decision, Event, Key, Manifest, Mutation, Object, Verb, key_of, merge
from kube.words import counted

FLOW = "JobFlow.flow.volcano.sh"
BY_FLOW = "volcano.sh/createdByJobFlow"
LISTS = {
    "pendingJobs": ("Pending",),
    "runningJobs": ("Running", "Restarting", "Aborting", "Completing", "Terminating"),
    "failedJobs": ("Failed",),
    "completedJobs": ("Completed",),
    "terminatedJobs": ("Terminated", "Aborted"),
}


@dataclass(frozen=True, slots=True)
class Flow:
    """One step of a flow: the template it is made from, and what it waits for."""

    template: str
    targets: tuple[str, ...]
    probe: Manifest
    patch: Manifest


class JobFlows:
    """The kind JobFlow of Volcano."""

    kind = FLOW
    watches: tuple[str, ...] = (TEMPLATE,)

    def observe(self, job: Object, event: Event, now: int) -> None:
        """A flow has no edges."""

    def forget(self, uid: str) -> None:
        """Nothing is remembered of a flow."""

    def concerned(self, event: Event, view: View) -> list[Key]:
        """The flows that name the template."""
        flows = view.in_namespace(FLOW, event.key.namespace)
        return [item.key for item in flows if any(flow.template == event.key.name for flow in _flows(item))]

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """Make the jobs whose turn it is; at the end, delete all of them where the flow does not retain them."""
        flows = _flows(job)
        children = {child.name: child for child in child_jobs(view.owned(job.uid))}
        state = (job.status.get("state") or {}).get("phase")
        if state == "Succeed":
            return _drop_children(job, children)
        made: list[Manifest] = []
        waits: list[str] = []
        for flow in flows:
            if _child_name(job, flow.template) in children:
                continue
            why = _waits_for(job, flow, children, view)
            if why is not None:
                waits.append(why)
            elif view.get(Key(JOB, job.namespace, _child_name(job, flow.template))) is None:
                probes = [later.probe for later in flows if flow.template in later.targets]
                made.append(_child(job, flow, probes, view))
        return _actions(job, made, _status(job, flows, children, "; ".join(waits)))


def _flows(job: Object) -> list[Flow]:
    flows = []
    for item in job.spec.get("flows") or ():
        depends = item.get("dependsOn") or {}
        patch = (item.get("patch") or {}).get("jobSpec") or (item.get("patch") or {}).get("spec") or {}
        targets = tuple(str(name) for name in depends.get("targets") or ())
        flows.append(Flow(str(item.get("name") or ""), targets, depends.get("probe") or {}, patch))
    return flows


def _child_name(job: Object, template: str) -> str:
    return f"{job.name}-{template}"


def _waits_for(job: Object, flow: Flow, children: dict[str, Object], view: View) -> str | None:
    """What the step waits for, in words; None when its turn has come."""
    for target in flow.targets:
        child = children.get(_child_name(job, target))
        if child is None:
            return f"{flow.template} waits for {target}, which is not made yet"
        missing = what_is_missing(flow.probe, child, [item for item in view.owned(child.uid) if item.kind == "Pod"])
        if missing is not None:
            return f"{flow.template} waits for {target}, {missing}"
    if view.get(Key(TEMPLATE, job.namespace, flow.template)) is None:
        return f"{flow.template} waits for its JobTemplate, which is not there"
    return None


def _child(job: Object, flow: Flow, probes: list[Manifest], view: View) -> Manifest:
    template = view.get(Key(TEMPLATE, job.namespace, flow.template))
    assert template is not None, "a step without a template waits"
    marks = {BY_TEMPLATE: f"{job.namespace}.{flow.template}", BY_FLOW: f"{job.namespace}.{job.name}"}
    labels, annotations = {**template.labels, **marks}, {**template.annotations, **marks}
    metadata = owned(job, _child_name(job, flow.template), labels=labels, annotations=annotations)
    spec = with_probes(merge(template.spec, flow.patch), probes)
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def _status(job: Object, flows: list[Flow], children: dict[str, Object], message: str) -> Manifest:
    by_phase = {
        name: [child.name for child in children.values() if phase_of(child) in of] for name, of in LISTS.items()
    }
    status: Manifest = {name: sorted(jobs) for name, jobs in by_phase.items() if jobs}
    status["jobStatusList"] = [_job_status(child) for _, child in sorted(children.items())]
    state: Manifest = {"phase": _phase(by_phase, len(flows))}
    status["state"] = {**state, "message": message} if message else state
    status["conditions"] = {
        name: {
            "phase": phase_of(child),
            "createTime": child.created,
            "runningDuration": child.status.get("runningDuration", "0s"),
            "taskStatusCount": child.status.get("taskStatusCount") or {},
        }
        for name, child in sorted(children.items())
    }
    return status


def _phase(by_phase: dict[str, list[str]], steps: int) -> str:
    if len(by_phase["completedJobs"]) == steps:
        return "Succeed"
    if by_phase["failedJobs"] or by_phase["terminatedJobs"]:
        return "Failed"
    return "Running" if by_phase["runningJobs"] or by_phase["completedJobs"] else "Pending"


def _job_status(child: Object) -> Manifest:
    status: Manifest = {
        "name": child.name,
        "state": phase_of(child),
        "startTimestamp": child.created,
        "restartCount": int(child.status.get("retryCount") or 0),
    }
    return {**status, "endTimestamp": ended_at(child)} if has_ended(child) else status


def _drop_children(job: Object, children: dict[str, Object]) -> Actions:
    """A flow that has succeeded makes nothing more; with ``jobRetainPolicy: delete`` its jobs go."""
    there = [child for child in children.values() if not child.deleting]
    if job.spec.get("jobRetainPolicy") != "delete" or not there:
        return Actions()
    mutations = tuple(Mutation(Verb.DELETE, child.key, uid=child.uid) for child in there)
    message = f"{job.name} has succeeded and does not retain its {counted(len(there), 'job')}"
    return Actions((Decision("FlowJobsDropped", job.key, job.uid, "FlowSucceeded", message, mutations),))


def _actions(job: Object, made: list[Manifest], status: Manifest) -> Actions:
    mutations = [Mutation(Verb.CREATE, key_of(manifest), manifest=manifest) for manifest in made]
    if patch := changes(job.status, status):
        mutations.append(Mutation(Verb.STATUS, job.key, uid=job.uid, patch=patch))
    if not mutations:
        return Actions()
    name = "FlowJobsWanted" if made else "FlowStatusChanged"
    names = ", ".join(manifest["metadata"]["name"] for manifest in made)
    message = f"{job.name}: the turn of {names} has come" if made else _words(job.name, status)
    return Actions((Decision(name, job.key, job.uid, status["state"]["phase"], message, tuple(mutations)),))


def _words(name: str, status: Manifest) -> str:
    """``nightly is Running: nightly-prepare Completed, nightly-train Running``."""
    jobs = ", ".join(f"{job} {one['phase']}" for job, one in (status.get("conditions") or {}).items())
    return f"{name} is {status['state']['phase']}" + (f": {jobs}" if jobs else "")
