"""What is to run on a node, as the message that its agent hears."""

import orjson

from cluster_gateway.domain.assignments import NodeAssignment
from tidegate.node.v1 import node_pb2


def assignment_message(assignment: NodeAssignment, revision: int) -> bytes:
    """The assignment as of ``revision``."""
    return node_pb2.Assignment(
        node=assignment.node,
        revision=revision,
        pods=[orjson.dumps(pod) for pod in assignment.pods],
        config_maps={name: orjson.dumps(body) for name, body in assignment.config_maps.items()},
        hosts=[
            node_pb2.HostEntry(namespace=namespace, address=address, names=names)
            for namespace, address, names in assignment.hosts
        ],
        node_slo=orjson.dumps(assignment.slo) if assignment.slo else b"",
        node_object=orjson.dumps(assignment.node_object) if assignment.node_object else b"",
    ).SerializeToString()
