"""Kueue's Workloads through all services in virtual time: each test is a scenario."""

from typing import Any

import pytest
import yaml

from kube import Event, from_manifest
from queue_manager.domain.core import QueueCore
from queue_manager.domain.policy import QueuePolicy
from queue_manager.domain.workloads.account import SOURCE
from queue_manager.domain.workloads.job_workload import gang_mark

NOW = 1_767_225_600_000
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  parallelism: 3
  completions: 3
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: busybox, resources: {requests: {cpu: 1}}}]}
"""

OWN = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: w}
spec:
  queueName: q
  podSets:
    - {name: lead, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
    - {name: crew, count: 4, minCount: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
"""


def test_a_workload_of_its_own_holds_quota_and_shows_what_it_was_given(play: Any, one_line: Any) -> None:
    small = one_line(OWN).replace("count: 4", "count: 3")
    play(f"""
- apply: [{small}]
- expect:
    object:
      - {{ref: Workload/w, path: status.admission.clusterQueue, equals: q}}
      - {{ref: Workload/w, path: 'status.admission.podSetAssignments[1].flavors.cpu', equals: f}}
      - {{ref: Workload/w, path: 'status.admission.podSetAssignments[1].resourceUsage.cpu', equals: 3}}
      - {{ref: Workload/w, path: status.conditions, contains: {{type: QuotaReserved, status: 'True'}}}}
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Admitted, status: 'True'}}}}
      - {{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 4}}
""")


def test_a_workload_that_does_not_fit_is_admitted_in_part_down_to_its_least_count(play: Any, one_line: Any) -> None:
    play(f"""
- apply: [{one_line(OWN)}]
- expect:
    object:
      - {{ref: Workload/w, path: 'status.admission.podSetAssignments[0].count', equals: 1}}
      - {{ref: Workload/w, path: 'status.admission.podSetAssignments[1].count', equals: 3}}
- apply: [{one_line(OWN, name="w2")}]
- expect:
    object:
      - {{ref: Workload/w2, path: status.conditions, contains: {{type: QuotaReserved, status: 'False', reason: ExceedsMaxQuota}}}}
""")


def test_a_job_is_suspended_until_it_has_quota_for_all_its_pods(play: Any, one_line: Any) -> None:
    play(f"""
- apply: [{one_line(JOB)}, {one_line(JOB, name="k")}]
- expect:
    count: [{{owner: Job/j, bound: 3}}, {{owner: Job/k, exists: 0}}]
    object:
      - {{ref: Job/k, path: spec.suspend, equals: true}}
      - {{ref: ClusterQueue/q, path: status.pendingWorkloads, equals: 1}}
      - {{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 3}}
- delete: [Job/j]
- expect:
    count: [{{owner: Job/k, bound: 3}}]
""")


def test_a_job_runs_with_fewer_pods_where_it_says_how_few_are_enough(play: Any, one_line: Any) -> None:
    wide = (
        one_line(JOB, annotations={"kueue.x-k8s.io/job-min-parallelism": "2"})
        .replace("completions: 3", "completions: 9")
        .replace("parallelism: 3", "parallelism: 9")
    )
    play(f"""
- apply: [{wide}]
- expect:
    count: [{{owner: Job/j, bound: 4}}]
    object: [{{ref: Job/j, path: spec.parallelism, equals: 4}}]
""")


@pytest.mark.parametrize(("completions", "holds", "other"), [(3, 1, 3), (5, 3, 0)])
def test_a_job_gives_the_quota_of_pods_back_that_it_needs_no_more(
    play: Any, one_line: Any, completions: int, holds: int, other: int
) -> None:
    """Two succeed: of three, one more has to; of five, three more, so that all three CPUs stay in use."""
    job = one_line(JOB).replace("completions: 3", f"completions: {completions}")
    play(f"""
- apply: [{job}, {one_line(JOB, name="k")}]
- expect: {{count: [{{owner: Job/j, running: 3}}, {{owner: Job/k, exists: 0}}]}}
- podPhase: [{{select: {{owner: Job/j}}, take: 2, phase: Succeeded}}]
- expect:
    count: [{{owner: Job/j, running: {holds}}}, {{owner: Job/k, running: {other}}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: {holds + other}}}]
""")


def test_a_job_that_is_applied_again_keeps_what_it_was_given(play: Any, one_line: Any) -> None:
    play(f"""
- apply: [{one_line(JOB)}]
- expect: {{count: [{{owner: Job/j, running: 3}}]}}
- apply: [{one_line(JOB)}]
- advance: 10s
- expect: {{count: [{{owner: Job/j, running: 3}}], evictedCount: 0}}
""")


def test_a_more_important_job_takes_the_quota_and_the_other_queues_again(play: Any, one_line: Any) -> None:
    high = one_line(JOB, name="k", labels={"kueue.x-k8s.io/priority-class": "high"})
    play(f"""
- apply: [{one_line(JOB)}]
- advance: 1s
- apply: [{high}]
- expect: {{count: [{{owner: Job/k, running: 3}}, {{owner: Job/j, exists: 0}}]}}
- delete: [Job/k]
- expect: {{count: [{{owner: Job/j, running: 3}}]}}
""")


def test_an_elastic_job_gets_more_pods_as_far_as_there_is_quota_and_gives_it_back(play: Any, one_line: Any) -> None:
    """It asks for six of four: four run at once, none beyond; when it asks for one, three CPUs are free again."""
    job = one_line(JOB, annotations={"kueue.x-k8s.io/elastic-job": "true"}).replace("completions: 3", "completions: 9")
    play(f"""
- apply: [{job}]
- expect: {{count: [{{labels: {{job-name: j}}, bound: 3}}]}}
- apply: [{job.replace("parallelism: 3", "parallelism: 6")}]
- expect:
    count: [{{labels: {{job-name: j}}, bound: 4, pending: 0}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 4}}]
- apply: [{job.replace("parallelism: 3", "parallelism: 1")}]
- expect:
    count: [{{labels: {{job-name: j}}, bound: 1}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 1}}]
""")


def test_a_job_that_is_not_elastic_keeps_the_size_it_has_quota_for(play: Any, one_line: Any) -> None:
    job = one_line(JOB).replace("completions: 3", "completions: 9").replace("parallelism: 3", "parallelism: 2")
    play(f"""
- apply: [{job}]
- apply: [{job.replace("parallelism: 2", "parallelism: 4")}]
- expect: {{count: [{{labels: {{job-name: j}}, bound: 2, pending: 0}}]}}
""")


RACKS = """
- nodes:
    - {name: a, allocatable: {cpu: 2, memory: 16Gi}, labels: {pool: p, rack: r1, kubernetes.io/hostname: a}}
    - {name: b, allocatable: {cpu: 1, memory: 16Gi}, labels: {pool: p, rack: r2, kubernetes.io/hostname: b}}
    - {name: c, allocatable: {cpu: 2, memory: 16Gi}, labels: {pool: p, rack: r2, kubernetes.io/hostname: c}}
- apply:
    - apiVersion: kueue.x-k8s.io/v1beta2
      kind: Topology
      metadata: {name: t}
      spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}
    - apiVersion: kueue.x-k8s.io/v1beta2
      kind: ResourceFlavor
      metadata: {name: f}
      spec: {nodeLabels: {pool: p}, topologyName: t}
    - apiVersion: kueue.x-k8s.io/v1beta2
      kind: ClusterQueue
      metadata: {name: q}
      spec:
        namespaceSelector: {}
        resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 9}]}]}]
    - {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
"""

JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: s, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  replicatedJobs:
    - name: w
      replicas: 1
      template:
        spec:
          parallelism: 3
          completions: 3
          template:
            metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}
            spec: {restartPolicy: Never, containers: [{name: c, image: busybox, resources: {requests: {cpu: 1}}}]}
"""


def test_a_job_set_in_a_local_queue_gets_quota_and_a_place_as_a_whole(play: Any, one_line: Any) -> None:
    """Three pods have to sit in one rack: r2 is the only one with room for them; a second set finds none and holds no quota."""
    play(
        f"""
- apply: [{one_line(JOB_SET)}]
- expect:
    count: [{{labels: {{jobset.sigs.k8s.io/jobset-name: s}}, bound: 3, perNode: {{b: 1, c: 2}}}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 3}}]
- apply: [{one_line(JOB_SET, name="later")}]
- expect:
    count: [{{labels: {{jobset.sigs.k8s.io/jobset-name: later}}, bound: 0}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 3}}]
""",
        setting=RACKS,
    )


NEAR = JOB.replace(
    "  template:\n", "  template:\n    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}\n"
)


def test_a_batch_job_in_a_local_queue_is_placed_in_one_domain_and_charged_once(play: Any, one_line: Any) -> None:
    """Three pods have to sit in one rack: r2 is the only one with room for them; a second Job finds none, holds no quota."""
    play(
        f"""
- apply: [{one_line(NEAR)}]
- expect:
    count: [{{labels: {{job-name: j}}, bound: 3, perNode: {{b: 1, c: 2}}}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 3}}]
- apply: [{one_line(NEAR, name="later")}]
- expect:
    count: [{{labels: {{job-name: later}}, bound: 0}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 3}}]
""",
        setting=RACKS,
    )


def test_a_pod_of_a_batch_job_that_failed_is_replaced_in_the_domain_of_the_others(play: Any, one_line: Any) -> None:
    """The failed one was on b, and so is the new one, though a is as empty."""
    play(
        f"""
- apply: [{one_line(NEAR)}]
- expect: {{count: [{{labels: {{job-name: j}}, bound: 3}}]}}
- podPhase: [{{select: {{labels: {{job-name: j}}}}, take: 1, phase: Failed}}]
- advance: 60s
- expect:
    count: [{{labels: {{job-name: j}}, running: 3, failed: 1, perNode: {{b: 2, c: 2}}}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 3}}]
""",
        setting=RACKS,
    )


def test_a_batch_job_that_comes_back_waits_for_no_more_pods_than_are_left_to_succeed() -> None:
    job = yaml.safe_load(NEAR)
    assert gang_mark(from_manifest(job), 3) == "Job/j/3"
    assert gang_mark(from_manifest(job | {"status": {"succeeded": 2}}), 3) == "Job/j/1"
    del job["spec"]["completions"]
    assert gang_mark(from_manifest(job | {"status": {"succeeded": 2}}), 3) == "Job/j/3"


def test_a_batch_job_admitted_in_part_is_a_gang_of_the_pods_that_it_has_quota_for(play: Any, one_line: Any) -> None:
    """Four pods fit nowhere together, and quota is there for two: they start together in the rack of just that size."""
    wide = one_line(NEAR.replace(": 3", ": 4"), annotations={"kueue.x-k8s.io/job-min-parallelism": "2"})
    play(
        f"""
- apply: [{wide}]
- expect:
    count: [{{labels: {{job-name: j}}, bound: 2, perNode: {{a: 2}}}}]
    object:
      - {{ref: Job/j, path: spec.parallelism, equals: 2}}
      - {{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 2}}
""",
        setting=RACKS.replace("nominalQuota: 9", "nominalQuota: 2"),
    )


def test_a_batch_job_that_is_made_smaller_before_it_starts_waits_for_no_pods_that_never_come(
    play: Any, one_line: Any
) -> None:
    """Its pods want to be where the pod ``first`` is. Three of them waited for it; the two that are left start with it."""
    near = "{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: "
    beside = NEAR.replace("spec: {restart", f"spec: {{affinity: {near}{{matchLabels: {{app: first}}}}}}]}}}}, restart")
    smaller = beside.replace("parallelism: 3", "parallelism: 2")
    play(
        f"""
- apply: [{one_line(beside)}]
- expect:
    count: [{{labels: {{job-name: j}}, bound: 0, exists: 3}}]
- apply: [{one_line(smaller)}]
- expect:
    count: [{{labels: {{job-name: j}}, bound: 0, exists: 2}}]
    object: [{{ref: ClusterQueue/q, path: 'status.flavorsUsage[0].resources[0].total', equals: 2}}]
- apply: [{{kind: Pod, metadata: {{name: first}}, labels: {{app: first}}, requests: {{memory: 1}}, nodeSelector: {{rack: r1}}}}]
- expect: {{count: [{{labels: {{job-name: j}}, bound: 2, perNode: {{a: 2}}}}]}}
""",
        setting=RACKS,
    )


def test_a_workload_that_comes_to_stand_for_another_object_is_none_of_its_own_any_more() -> None:
    """Else its quota would be taken back again and again, as what it says is not heard."""
    core = QueueCore(QueuePolicy(queueing="cohort"))
    own = from_manifest(yaml.safe_load(OWN), uid="w")
    core.fold([Event(None, own)], NOW)
    asked = {"kind": own.kind, "namespace": "default", "name": "w"}
    assert core.query("explain", asked)["verdict"] == "NotLetIn"
    core.fold([Event(own, own.changed(metadata={"annotations": {SOURCE: "Pod/p"}}))], NOW)
    assert core.query("explain", asked) == {}
