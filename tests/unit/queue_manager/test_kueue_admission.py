"""How work is admitted and sent away again as Kueue does it: checks, time-outs, deactivation, stopped queues."""

from typing import Any

import pytest

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

POD = """
kind: Pod
metadata: {name: p}
labels: {kueue.x-k8s.io/queue-name: q}
requests: {cpu: 3}
"""

CHECKED = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: budget}]}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]
"""

CHECK = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.com/budget}
"""

TRAIN = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: t, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: busybox, resources: {requests: {cpu: 1}}}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: busybox, resources: {requests: {cpu: 1}}}]}}}
"""

OWN = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: w}
spec:
  queueName: q
  podSets: [{name: main, count: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]
"""

WAITING = "{type: Admitted, status: 'False', reason: UnsatisfiedAdmissionChecks}"
SHORT = "{kueue: {waitForPodsReady: {timeout: 5m, requeuingStrategy: {backoffBaseSeconds: 60, backoffLimitCount: 1}}}}"


@pytest.fixture
def own(one_line: Any) -> Any:
    """The Workload that stands for itself, with more in its spec."""

    def make(**spec: str) -> str:
        more = "".join(f", {name}: {value}" for name, value in spec.items())
        return str(one_line(OWN).replace("queueName: q", f"queueName: q{more}"))

    return make


def test_a_check_that_nobody_answers_keeps_work_waiting_with_its_quota_and_the_reason(
    play: Any, one_line: Any, own: Any
) -> None:
    play(f"""
- apply: [{one_line(CHECK)}, {one_line(CHECKED)}]
- apply: [{one_line(TRAIN)}]
- advance: 1s
- apply: [{own()}]
- expect:
    count: [{{job: t, bound: 0}}]
    object:
      - {{ref: PodGroup/t, path: status.conditions, contains: {WAITING}}}
      - {{ref: PodGroup/t, path: status.phase, equals: Pending}}
      - {{ref: ClusterQueue/q, path: 'status.flavorsReservation[0].resources[0].total', equals: 3}}
      - {{ref: Workload/w, path: status.conditions, contains: {{type: QuotaReserved, status: 'False'}}}}
""")


def test_a_check_that_does_not_exist_lets_nobody_in(play: Any, one_line: Any, own: Any) -> None:
    play(f"""
- apply: [{one_line(CHECKED)}]
- apply: [{one_line(POD)}]
- expect: {{pods: {{p: {{node: null, message: AdmissionCheck budget}}}}}}
- apply: [{one_line(CHECK)}]
- expect: {{pods: {{p: {{node: null, message: budget}}}}}}
""")


def test_work_starts_when_its_checks_agree_and_is_deactivated_when_one_rejects(
    play: Any, one_line: Any, own: Any
) -> None:
    answered = own().replace("name: w", "name: w, annotations: {checks.tidegate.dev/budget: Ready}")
    rejected = own().replace("name: w", "name: w, annotations: {checks.tidegate.dev/budget: 'Rejected: no money'}")
    play(f"""
- apply: [{one_line(CHECK)}, {one_line(CHECKED)}]
- apply: [{own()}]
- expect:
    object:
      - {{ref: Workload/w, path: status.conditions, contains: {{type: QuotaReserved, status: 'True'}}}}
      - {{ref: Workload/w, path: status.conditions, contains: {WAITING}}}
      - {{ref: Workload/w, path: status.admissionChecks, contains: {{name: budget, state: Pending}}}}
- restart: [all]
- apply: [{answered}]
- expect:
    object:
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Admitted, status: 'True'}}}}
      - {{ref: Workload/w, path: status.admissionChecks, contains: {{name: budget, state: Ready}}}}
- apply: [{rejected}]
- expect:
    object:
      - {{ref: Workload/w, path: spec.active, equals: false}}
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Evicted, status: 'True', reason: AdmissionCheck}}}}
      - {{ref: Workload/w, path: status.conditions, contains: {{type: QuotaReserved, status: 'False', reason: Deactivated}}}}
      - {{ref: ClusterQueue/q, path: status.reservingWorkloads, equals: 0}}
""")


def test_a_check_that_asks_for_another_try_sends_work_away_for_a_while(play: Any, one_line: Any, own: Any) -> None:
    retry = own().replace("name: w", "name: w, annotations: {checks.tidegate.dev/budget: 'Retry: full'}")
    play(f"""
- apply: [{one_line(CHECK)}, {one_line(CHECKED)}]
- apply: [{own()}]
- apply: [{retry}]
- expect:
    object:
      - {{ref: Workload/w, path: status.conditions, contains: {{type: QuotaReserved, status: 'False', reason: BackingOff}}}}
      - {{ref: Workload/w, path: status.requeueState.count, equals: 1}}
- advance: 61s
- expect:
    object:
      - {{ref: Workload/w, path: status.conditions, contains: {{type: QuotaReserved, status: 'True'}}}}
      - {{ref: Workload/w, path: status.conditions, contains: {WAITING}}}
""")


def test_a_training_job_shows_a_workload_of_its_own_with_its_pod_sets(play: Any, one_line: Any, own: Any) -> None:
    """Its name ends in letters that depend on the job's uid, so it is found by the queue's numbers."""
    play(f"""
- apply: [{one_line(TRAIN)}]
- expect:
    count: [{{job: t, running: 3}}]
    object: [{{ref: ClusterQueue/q, path: status.admittedWorkloads, equals: 1}}]
""")


def test_pods_that_do_not_get_ready_in_time_cost_the_quota_and_in_the_end_the_activity(
    play: Any, one_line: Any, own: Any
) -> None:
    play(
        f"""
- apply: [{one_line(JOB)}]
- expect: {{count: [{{labels: {{job-name: j}}, bound: 3}}]}}
- advance: 4m
- expect: {{count: [{{labels: {{job-name: j}}, bound: 3}}]}}
- restart: [all]
- advance: 61s
- expect:
    count: [{{labels: {{job-name: j}}, bound: 0}}]
    object: [{{ref: Job/j, path: status.conditions, contains: {{type: QuotaReserved, status: 'False', reason: BackingOff}}}}]
- advance: 61s
- expect: {{count: [{{labels: {{job-name: j}}, bound: 3}}]}}
- advance: 5m
- advance: 2h
- expect:
    count: [{{labels: {{job-name: j}}, bound: 0}}]
    object: [{{ref: Job/j, path: status.conditions, contains: {{type: QuotaReserved, status: 'False', reason: Deactivated}}}}]
""",
        SHORT,
        "{podStart: manual}",
    )


def test_work_that_gets_ready_in_time_stays(play: Any, one_line: Any, own: Any) -> None:
    play(
        f"""
- apply: [{one_line(JOB)}, {one_line(TRAIN, name="u")}]
- advance: 2h
- expect: {{count: [{{labels: {{job-name: j}}, running: 3}}]}}
""",
        SHORT,
    )


def test_with_block_admission_one_follows_when_the_other_is_ready(play: Any, one_line: Any, own: Any) -> None:
    one = one_line(POD).replace("cpu: 3", "cpu: 1")
    play(
        f"""
- apply: [{one}, {one.replace("name: p", "name: r")}]
- expect: {{pods: {{p: {{phase: Pending}}, r: {{node: null, message: until all pods of p are ready}}}}}}
- podPhase: {{p: Running}}
- podReady: {{p: true}}
- expect: {{pods: {{r: {{node: n}}}}}}
""",
        "{kueue: {waitForPodsReady: {timeout: 5m, blockAdmission: true}}}",
        "{podStart: manual}",
    )


def test_work_ends_when_it_has_run_as_long_as_it_may(play: Any, one_line: Any, own: Any) -> None:
    job = one_line(JOB, labels={"kueue.x-k8s.io/max-exec-time-seconds": "600"})
    play(f"""
- apply: [{job}, {own(maximumExecutionTimeSeconds="300").replace("count: 2", "count: 1")}]
- expect: {{count: [{{labels: {{job-name: j}}, running: 3}}]}}
- advance: 301s
- expect:
    object:
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Evicted, reason: MaximumExecutionTimeExceeded}}}}
      - {{ref: Workload/w, path: spec.active, equals: false}}
    count: [{{labels: {{job-name: j}}, running: 3}}]
- advance: 300s
- expect: {{count: [{{labels: {{job-name: j}}, exists: 0}}]}}
""")


def test_a_deactivated_workload_gives_its_quota_back_until_it_is_activated(play: Any, one_line: Any, own: Any) -> None:
    play(f"""
- apply: [{own()}]
- apply: [{own(active="false")}]
- expect:
    object:
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Evicted, status: 'True', reason: Deactivated}}}}
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Admitted, status: 'False', reason: NoReservation}}}}
      - {{ref: Workload/w, path: status.admission, exists: false}}
- apply: [{own(active="true")}]
- expect:
    object:
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Admitted, status: 'True'}}}}
      - {{ref: Workload/w, path: status.conditions, contains: {{type: Evicted, status: 'False'}}}}
""")


def test_a_held_queue_keeps_what_runs_and_a_drained_one_does_not(play: Any, one_line: Any, own: Any) -> None:
    held = one_line(CHECKED).replace("admissionChecksStrategy: {admissionChecks: [{name: budget}]}", "stopPolicy: Hold")
    play(f"""
- apply: [{one_line(JOB)}]
- apply: [{held}]
- apply: [{one_line(POD).replace("cpu: 3", "cpu: 1")}]
- expect:
    count: [{{labels: {{job-name: j}}, running: 3}}]
    pods: {{p: {{node: null, message: stopped}}}}
- apply: [{held.replace("stopPolicy: Hold", "stopPolicy: HoldAndDrain")}]
- expect: {{count: [{{labels: {{job-name: j}}, exists: 0}}]}}
- apply: [{held.replace("stopPolicy: Hold", "stopPolicy: None")}]
- expect: {{count: [{{labels: {{job-name: j}}, running: 3}}]}}
""")


CLASS = """
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: vm}
handler: vm
overhead: {podFixed: {cpu: 500m}}
"""


@pytest.mark.parametrize("manifest", [JOB, TRAIN, OWN], ids=["Job", "PyTorchJob", "Workload"])
def test_the_overhead_of_a_runtime_class_is_part_of_the_quota_that_a_job_needs(
    play: Any, one_line: Any, manifest: str
) -> None:
    """Three pods of one CPU need 4.5 with their overhead, and the queue has four; two pods need three."""
    named = one_line(manifest).replace("containers:", "runtimeClassName: vm, containers:")
    used, waiting = (3, 0) if manifest == OWN else (0, 1)
    play(f"""
- apply: [{one_line(CLASS)}]
- apply: [{named}]
- expect:
    object:
      - {{ref: LocalQueue/q, path: 'status.flavorsReservation[0].resources[0].total', equals: "{used}"}}
      - {{ref: LocalQueue/q, path: status.pendingWorkloads, equals: {waiting}}}
""")


def test_a_held_queue_takes_back_what_was_only_reserved(play: Any, one_line: Any) -> None:
    held = one_line(CHECKED).replace("namespaceSelector", "stopPolicy: Hold, namespaceSelector")
    reserved = "{ref: ClusterQueue/q, path: 'status.flavorsReservation[0].resources[0].total', equals: "
    play(f"""
- apply: [{one_line(CHECK)}, {one_line(CHECKED)}]
- apply: [{one_line(POD)}]
- expect: {{object: [{reserved}3}}], pods: {{p: {{node: null, message: budget}}}}}}
- apply: [{held}]
- expect: {{object: [{reserved}0}}], pods: {{p: {{node: null, message: stopped}}}}}}
- apply: [{one_line(CHECKED)}]
- expect: {{object: [{reserved}3}}]}}
""")
