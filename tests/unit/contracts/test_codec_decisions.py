"""Commits of decisions: what the gateway reads is what the core decided."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kube import Decision, Key, Manifest, Mutation, Verb, api_version_of
from tidegate.codec.decisions import CommitHead, Private, decode_commit, encode_commit
from tidegate.decision.v1 import decision_pb2

KINDS = ("Pod", "Job.batch.volcano.sh", "Service", "Queue.scheduling.volcano.sh")
texts = st.sampled_from(["", "a", "b.c", "é"])
keys = st.builds(Key, st.sampled_from(KINDS), st.sampled_from(["", "team"]), st.sampled_from(["x", "y.z"]))
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2))
manifests = st.dictionaries(st.sampled_from(["spec", "phase", "labels"]), values, max_size=2)
graces = st.none() | st.integers(0, 2**32 - 1)


@st.composite
def created(draw: st.DrawFn) -> Mutation:
    key = draw(keys)
    metadata: Manifest = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    metadata |= draw(st.fixed_dictionaries({}, optional={"labels": manifests, "ownerReferences": st.just([{}])}))
    manifest: Manifest = {
        "apiVersion": api_version_of(key.kind),
        "kind": key.kind.partition(".")[0],
        "metadata": metadata,
        **draw(st.fixed_dictionaries({}, optional={"spec": manifests, "data": manifests})),
    }
    status = draw(manifests)
    return Mutation(Verb.CREATE, key, manifest=manifest | ({"status": status} if status else {}))


mutations = st.one_of(
    created(),
    st.builds(lambda key, uid, patch: Mutation(Verb.PATCH, key, uid, patch=patch), keys, texts, manifests),
    st.builds(lambda key, uid, patch: Mutation(Verb.STATUS, key, uid, patch=patch), keys, texts, manifests),
    st.builds(lambda key, uid, grace: Mutation(Verb.DELETE, key, uid, grace_seconds=grace), keys, texts, graces),
    st.builds(
        lambda key, uid, node, devices: Mutation(Verb.BIND, key, uid, node=node, devices=devices),
        keys,
        texts,
        texts,
        st.none() | manifests,
    ),
    st.builds(lambda key, uid, grace: Mutation(Verb.EVICT, key, uid, grace_seconds=grace), keys, texts, graces),
)
decisions = st.builds(
    Decision,
    texts,
    keys,
    texts,
    texts,
    texts,
    st.lists(mutations, max_size=3).map(tuple),
    st.none() | manifests,
)


@given(st.lists(st.tuples(st.text("abc/1", max_size=4), decisions), max_size=3))
def test_decisions_come_back_as_they_were_made(given_decisions: list[tuple[str, Decision]]) -> None:
    payload = encode_commit(CommitHead("gang_scheduler", 3, 5, 7), given_decisions)
    assert list(decode_commit(decision_pb2.Commit.FromString(payload))) == given_decisions


@given(st.lists(st.tuples(texts, decisions), max_size=3))
@settings(max_examples=50)
def test_the_same_decisions_make_the_same_bytes(given_decisions: list[tuple[str, Decision]]) -> None:
    """Read and written again: what replay rests on."""
    head = CommitHead("gang_scheduler", 3, 5, 7)
    payload = encode_commit(head, given_decisions)
    assert encode_commit(head, decode_commit(decision_pb2.Commit.FromString(payload))) == payload


def test_a_commit_says_what_it_was_decided_on() -> None:
    head = CommitHead("gang_scheduler", 3, 5, 7_000, {"queue_manager": 9}, leader_started=True)
    commit = decision_pb2.Commit.FromString(encode_commit(head, (), Private(b"\x00state")))
    assert (commit.service, commit.epoch, commit.decided_on, commit.now_ms) == ("gang_scheduler", 3, 5, 7_000)
    assert (dict(commit.inputs), commit.leader_started, commit.private_state) == (
        {"queue_manager": 9},
        True,
        b"\x00state",
    )


def test_a_created_object_loses_the_identity_that_only_the_cluster_gives() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team", "uid": "mine", "resourceVersion": "4", "labels": {"a": "b"}},
    }
    key = Key("Pod", "team", "p")
    payload = encode_commit(
        CommitHead("s", 1, 1, 1),
        [("s/1/1", Decision("X", key, mutations=(Mutation(Verb.CREATE, key, manifest=manifest),)))],
    )
    ((_, decision),) = decode_commit(decision_pb2.Commit.FromString(payload))
    (mutation,) = decision.mutations
    assert mutation.manifest is not None
    assert mutation.manifest["metadata"] == {"name": "p", "namespace": "team", "labels": {"a": "b"}}


def test_the_pods_of_a_gang_share_their_template() -> None:
    body = {"containers": [{"image": "x" * 1000}]}
    made = [
        Mutation(
            Verb.CREATE,
            Key("Pod", "team", f"p{n}"),
            manifest={
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"p{n}", "namespace": "team"},
                "spec": body,
            },
        )
        for n in range(100)
    ]
    gang = Decision("PodsMade", Key("Job.batch.volcano.sh", "team", "j"), mutations=tuple(made))
    payload = encode_commit(CommitHead("job_controller", 1, 1, 1), [("job_controller/1/1", gang)])
    assert len(payload) < 8_000
    ((_, decoded),) = decode_commit(decision_pb2.Commit.FromString(payload))
    assert len({id((m.manifest or {})["spec"]) for m in decoded.mutations}) == 1
