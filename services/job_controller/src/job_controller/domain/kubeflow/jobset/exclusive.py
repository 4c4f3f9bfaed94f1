"""Exclusive placement: all pods of a Job in one domain of a topology, and no other Job of any set in that domain."""

from job_controller.domain.kubeflow.jobset.spec import PREFIX, ReplicatedJobSpec
from kube import Manifest, Object

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
JOB_KEY = f"{PREFIX}job-key"


def exclusive_affinity(source: Object, replicated: ReplicatedJobSpec, job_key: str, pod_spec: Manifest) -> Manifest:
    """The pod spec with the affinities that the set's or the replicated job's annotation asks for.

    Upstream gives them to the first pod of a Job and makes the others follow it; here a scheduler that places the whole
    can hold every pod to them.
    """
    given = (replicated.template.get("metadata") or {}).get("annotations") or {}
    topology = given.get(EXCLUSIVE) or source.annotations.get(EXCLUSIVE)
    if not topology:
        return pod_spec
    own: Manifest = {"key": JOB_KEY, "operator": "In", "values": [job_key]}
    others: list[Manifest] = [
        {"key": JOB_KEY, "operator": "Exists"},
        {"key": JOB_KEY, "operator": "NotIn", "values": [job_key]},
    ]
    affinity = dict(pod_spec.get("affinity") or {})
    affinity["podAffinity"] = _with_term(affinity.get("podAffinity"), topology, [own])
    affinity["podAntiAffinity"] = _with_term(affinity.get("podAntiAffinity"), topology, others)
    return {**pod_spec, "affinity": affinity}


def _with_term(before: Manifest | None, topology: str, expressions: list[Manifest]) -> Manifest:
    term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology, "namespaceSelector": {}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {**(before or {}), required: [*((before or {}).get(required) or []), term]}
