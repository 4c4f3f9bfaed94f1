"""The values of Secrets: kept by the gateway, given to the nodes that need them, and nowhere else."""

import json
from typing import Any

from kube import Key, Manifest
from tidegate import subjects
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2

KEY = Key("Secret", "default", "s")


def pod(name: str, namespace: str = "default", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main"}], **spec}}


VALUE = "correct horse battery staple"
BASE64 = "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ=="


def secret(name: str = "s", **parts: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default", **parts.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **parts}


def everything(rig: Any) -> bytes:
    """All that is kept on the bus."""
    return b"".join(
        [
            *(entry.payload for log in rig.bus._logs.values() for entry in log.entries(0)),
            *(content for log in rig.bus._logs.values() for content in log._snapshots.values()),
            *rig.bus._values.values(),
        ]
    )


def values(rig: Any, node: str = "n1", name: str = "s") -> dict[str, bytes] | None:
    request = node_pb2.SecretRequest(node=node, namespace="default", name=name).SerializeToString()
    reply = node_pb2.SecretReply.FromString(rig.do(rig.bus.request(subjects.SECRET, request)))
    return dict(reply.data) if reply.found else None


def test_the_values_of_a_secret_are_nowhere_on_the_bus(rig: Any) -> None:
    rig.node("n1")
    copy = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"stringData": {"a": VALUE}}), "k": "v"}
    rig.write(secret(data={"a": BASE64}, metadata={"annotations": copy}), pod("p", nodeName="n1"))
    rig.write(secret(stringData={"b": VALUE}, data={"a": BASE64}), force=True)
    rig.write(secret("t", stringData={"c": VALUE}))
    rig.do(rig.gateway.snapshot())
    kept = everything(rig)
    assert VALUE.encode() not in kept and BASE64.rstrip("=").encode() not in kept
    assert rig.get("Secret", "s").body == {"data": {"a": "", "b": ""}}
    assert values(rig) == {"a": VALUE.encode(), "b": VALUE.encode()}


def test_only_a_node_that_runs_a_pod_of_the_namespace_is_given_a_secret(rig: Any) -> None:
    rig.node("n1")
    rig.node("n2")
    rig.write(secret(stringData={"a": VALUE}), pod("p", nodeName="n1"), pod("q", "team", nodeName="n2"))
    assert values(rig) == {"a": VALUE.encode()} and values(rig, "n2") is None and values(rig, name="none") is None


def test_values_that_are_read_back_hidden_stay_as_they_are(rig: Any) -> None:
    rig.node("n1")
    seen = rig.write(secret(stringData={"a": VALUE, "b": "x"}), pod("p", nodeName="n1")).revision
    stored = rig.get("Secret", "s").body["data"]
    rig.write(secret(data={**stored, "c": "eQ=="}), expected=seen)
    assert values(rig) == {"a": VALUE.encode(), "b": b"x", "c": b"y"}


def test_a_value_that_is_taken_out_is_kept_no_longer(rig: Any) -> None:
    rig.node("n1")
    rig.write(secret(stringData={"a": VALUE, "b": "x"}), pod("p", nodeName="n1"))
    rig.write(secret(data={"b": ""}), force=True)
    assert rig.get("Secret", "s").body == {"data": {"b": ""}} and values(rig) == {"b": b"x"}


def test_a_secret_that_is_deleted_and_made_again_knows_nothing_of_the_old_one(rig: Any) -> None:
    rig.node("n1")
    rig.write(secret(stringData={"a": VALUE, "b": "old"}), pod("p", nodeName="n1"))
    gone = gateway_pb2.Write(delete=True, force=True, kind="Secret", namespace="default", name="s")
    again = rig.storing(secret(stringData={"a": "new"}, data={"b": ""}), force=True)
    rig.ask(rig.request(gone, *again.writes, blobs=again.blobs))
    assert values(rig) == {"a": b"new", "b": b""}
    rig.delete(KEY)
    assert values(rig) is None and rig.secrets.get(KEY) is None


def test_a_secret_made_deleted_and_made_again_in_one_go_has_the_last_values(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("p", nodeName="n1"))
    gone = gateway_pb2.Write(delete=True, force=True, kind="Secret", namespace="default", name="s")
    for request in (
        rig.storing(secret(stringData={"a": "first"})),
        rig.request(gone),
        rig.storing(secret(stringData={"a": "second"})),
    ):
        rig.loop.create_task(rig.bus.request(subjects.WRITE, request.SerializeToString()))
    rig.loop.settle()
    assert values(rig) == {"a": b"second"}


def test_a_text_that_is_no_base64_is_the_value_itself_and_line_breaks_do_not_matter(rig: Any) -> None:
    rig.node("n1")
    rig.write(secret(data={"a": "not base64!", "b": "ZWZn\naGlq\n", "c": None}), pod("p", nodeName="n1"))
    assert values(rig) == {"a": b"not base64!", "b": b"efghij", "c": b""}


def test_a_key_pair_is_made_once_where_one_is_asked_for(rig: Any) -> None:
    rig.node("n1")
    wanted = {"annotations": {"tidegate.dev/generate": "ssh-keypair"}}
    rig.write(secret(metadata=wanted), pod("p", nodeName="n1"))
    made = values(rig)
    assert made is not None and sorted(made) == ["authorized_keys", "id_rsa", "id_rsa.pub"]
    assert b"PRIVATE KEY" in made["id_rsa"] and b"PRIVATE KEY" not in everything(rig)
    rig.write(secret(metadata={**wanted, "labels": {"x": "y"}}), force=True)
    rig.restart()
    assert values(rig) == made
    assert rig.get("Secret", "s").body["data"] == dict.fromkeys(sorted(made), "")


def test_a_key_pair_of_the_ssh_auth_type_has_the_names_of_that_type(rig: Any) -> None:
    rig.node("n1")
    wanted = secret(metadata={"annotations": {"tidegate.dev/generate": "ssh-keypair"}})
    rig.write({**wanted, "type": "kubernetes.io/ssh-auth"}, pod("p", nodeName="n1"))
    assert sorted(values(rig) or {}) == ["ssh-privatekey", "ssh-publickey"]


def test_the_values_outlive_the_gateway(rig: Any) -> None:
    rig.node("n1")
    rig.write(secret(stringData={"a": VALUE}), pod("p", nodeName="n1"))
    rig.restart()
    assert values(rig) == {"a": VALUE.encode()}
