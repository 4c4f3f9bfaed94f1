"""Use over time: who has used much lately stands behind, and less so as time goes on."""

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resources.decay import averaged, remaining

POLICY = "{kueue: {admissionFairSharing: {usageHalfLifeTime: 1h}}}"

QUEUES = """
- nodes: [{name: n, allocatable: {cpu: 4, memory: 64Gi}}]
- apply:
    - {kind: Queue, metadata: {name: a}, spec: {weight: 1}}
    - {kind: Queue, metadata: {name: b}, spec: {weight: 1}}
- apply: [{kind: Pod, metadata: {name: first}, queue: a, requests: {cpu: 4}, simulate: {duration: 30m}}]
- advance: 1s
- apply: [{kind: Pod, metadata: {name: a1}, queue: a, requests: {cpu: 4}, simulate: {duration: 30m}}]
- advance: 1s
- apply: [{kind: Pod, metadata: {name: b1}, queue: b, requests: {cpu: 4}}]
"""

KUEUE = """
- nodes: [{name: n, allocatable: {cpu: 64, memory: 128Gi}}]
- apply:
    - {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
    - apiVersion: kueue.x-k8s.io/v1beta2
      kind: ClusterQueue
      metadata: {name: q}
      spec:
        namespaceSelector: {}
        admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
        resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]
    - {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: a}, spec: {clusterQueue: q}}
    - {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: b}, spec: {clusterQueue: q}}
"""


POD = (
    "{{kind: Pod, metadata: {{name: {}}}, labels: {{kueue.x-k8s.io/queue-name: {}}}, requests: {{cpu: 4}}, "
    "simulate: {{duration: 30m}}}}"
)


def test_a_queue_that_used_the_cluster_lately_stands_behind_one_that_did_not(play: Any) -> None:
    steps = "- restart: [all]\n- advance: 30m\n- expect: {pods: {b1: {node: n}, a1: {node: null}}}"
    play(steps, POLICY.replace("{kueue", "{queueing: proportion, kueue"), setting=QUEUES)


def test_without_a_half_life_only_present_use_counts(play: Any) -> None:
    play(
        "- advance: 30m\n- expect: {pods: {a1: {node: n}, b1: {node: null}}}",
        "{queueing: proportion}",
        setting=QUEUES,
    )


def test_local_queues_are_served_by_what_they_have_used(play: Any) -> None:
    play(
        f"""
- apply: [{POD.format("first", "a")}]
- advance: 1s
- apply: [{POD.format("a1", "a")}]
- advance: 1s
- apply: [{POD.format("b1", "b")}]
- restart: [all]
- advance: 30m
- expect: {{pods: {{b1: {{node: n}}, a1: {{node: null}}}}}}
- advance: 30m
- expect: {{pods: {{a1: {{node: n}}}}}}
""",
        POLICY,
        setting=KUEUE,
    )


def test_without_the_scope_local_queues_share_one_line(play: Any) -> None:
    play(
        f"""
- apply: [{POD.format("first", "a")}]
- advance: 1s
- apply: [{POD.format("a1", "a")}]
- advance: 1s
- apply: [{POD.format("b1", "b")}]
- advance: 30m
- expect: {{pods: {{a1: {{node: n}}, b1: {{node: null}}}}}}
""",
        "{}",
        setting=KUEUE,
    )


@given(st.integers(0, 10**12), st.integers(1, 10**9))
def test_what_remains_is_the_power_of_two_to_a_ten_thousandth(elapsed: int, half_life: int) -> None:
    exact = 2.0 ** -(elapsed / half_life) if elapsed / half_life < 64 else 0.0
    assert abs(Fraction(remaining(elapsed, half_life), 1 << 64) - Fraction(exact)) < Fraction(1, 10_000)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**8), st.integers(1, 10**7))
def test_an_average_lies_between_past_and_present_use(past: int, used: int, elapsed: int, half_life: int) -> None:
    found = averaged({"cpu": past}, {"cpu": used}, elapsed, half_life).get("cpu", 0)
    assert min(past, used) - 1 <= found <= max(past, used)


TREE = """
- nodes: [{name: n, allocatable: {cpu: 8, memory: 64Gi}}]
- apply:
    - {kind: Queue, metadata: {name: left}, spec: {weight: 1}}
    - {kind: Queue, metadata: {name: right}, spec: {weight: 1}}
    - {kind: Queue, metadata: {name: l1}, spec: {weight: 1, parent: left}}
    - {kind: Queue, metadata: {name: l2}, spec: {weight: 1, parent: left}}
    - {kind: Queue, metadata: {name: r1}, spec: {weight: 1, parent: right}}
- apply:
    - {kind: Pod, metadata: {name: "l1-{i}"}, queue: l1, requests: {cpu: 1}, count: 4}
    - {kind: Pod, metadata: {name: "r1-{i}"}, queue: r1, requests: {cpu: 1}, count: 3}
    - {kind: Pod, metadata: {name: blocker}, queue: r1, requests: {cpu: 1}}
"""


def test_dominant_shares_are_compared_level_by_level(play: Any) -> None:
    """l2 has nothing, but its parent has four CPUs of eight and right has three: the room that comes free is right's."""
    play(
        """
- apply:
    - {kind: Pod, metadata: {name: l2}, queue: l2, requests: {cpu: 1}}
    - {kind: Pod, metadata: {name: r1-late}, queue: r1, requests: {cpu: 1}}
- delete: [Pod/blocker]
- expect: {pods: {r1-late: {node: n}, l2: {node: null}}}
""",
        "{queueing: drf, reclaim: false, preemption: false}",
        setting=TREE,
    )
