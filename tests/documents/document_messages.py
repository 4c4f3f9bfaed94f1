"""The messages on the bus. The tests compare them with `tidegate.subjects`; `docs/events.md` is made from them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """A kind of message on the bus. ``source`` is its name in `tidegate.subjects`, empty where the bus itself makes it."""

    source: str
    subject: str
    carries: str
    sent_by: str
    taken_by: str
    kept: str


MESSAGES = (
    Message(
        "FACTS",
        "tidegate.fact",
        "`fact.v1.ChangeSet`: all that changed together, and the outcomes of decisions",
        "cluster_gateway",
        "every service but node_agent",
        "log, with snapshots",
    ),
    Message(
        "decisions",
        "tidegate.decision.<service>",
        "`decision.v1.Commit`: decisions taken together, and private state that changed with them",
        "the deciding service",
        "cluster_gateway carries them out; admission shows them; gang_scheduler hears queue_manager",
        "log",
    ),
    Message(
        "assignment",
        "tidegate.assignment.<node>",
        "`node.v1.Assignment`: all that is to run on the node",
        "cluster_gateway",
        "node_agent",
        "last value",
    ),
    Message(
        "report",
        "tidegate.report.<node>",
        "`node.v1.Report`: states of pods, inventory, usage; sent again until it is stored",
        "node_agent",
        "cluster_gateway",
        "request",
    ),
    Message(
        "heartbeat",
        "tidegate.heartbeat.<node>",
        "the node's name; a node that is silent for 40 s is not ready",
        "node_agent",
        "cluster_gateway",
        "no",
    ),
    Message(
        "WRITE",
        "tidegate.request.cluster_gateway.write",
        "`gateway.v1.WriteRequest`: objects that admission has completed and checked",
        "admission",
        "cluster_gateway",
        "request",
    ),
    Message(
        "SECRET",
        "tidegate.request.cluster_gateway.secret",
        "`node.v1.SecretRequest`: the values of a Secret that a pod of the node names",
        "node_agent",
        "cluster_gateway",
        "request",
    ),
    Message(
        "SAMPLES",
        "tidegate.request.cluster_gateway.samples",
        "`gateway.v1.WriteRequest` of MetricReadings, and of nothing else",
        "inference_autoscaler, inference_gateway",
        "cluster_gateway",
        "request",
    ),
    Message(
        "CREDENTIAL",
        "tidegate.request.cluster_gateway.credential",
        "`gateway.v1.CredentialRequest`: the values of a Secret that a TriggerAuthentication names",
        "inference_autoscaler",
        "cluster_gateway",
        "request",
    ),
    Message(
        "question",
        "tidegate.request.<service>.<question>",
        "JSON: why something waits, or where it went",
        "admission",
        "the service that owns the answer",
        "request",
    ),
    Message(
        "node_logs",
        "tidegate.request.node_agent.<node>.logs",
        "`node.v1.LogRequest`: what a container wrote",
        "admission",
        "node_agent",
        "request",
    ),
    Message(
        "",
        "tidegate.dead.<service>",
        "a message that could not be handled, with its error (`tidegate events --dead`)",
        "any service",
        "admission, for people",
        "30 days or 64 MiB",
    ),
)
