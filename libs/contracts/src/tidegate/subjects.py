"""Every subject on the bus, made in one place. Names become one token: what a subject cannot hold is escaped."""

FACTS = "fact"
"""The name of the log of facts."""

WRITE = "tidegate.request.cluster_gateway.write"
SECRET = "tidegate.request.cluster_gateway.secret"
CREDENTIAL = "tidegate.request.cluster_gateway.credential"
SAMPLES = "tidegate.request.cluster_gateway.samples"
"""Writes of MetricReadings, and of nothing else: by services that measure."""


def token(name: str) -> str:
    """``name`` as one subject token: letters, digits, ``-`` and ``_`` stay, all else becomes ``=`` and two hex digits."""
    safe = (
        chr(byte) if (byte < 128 and chr(byte).isalnum()) or byte in b"-_" else f"={byte:02X}" for byte in name.encode()
    )
    return "".join(safe)


def decisions(service: str) -> str:
    """The name of a service's decision log."""
    return f"decision.{service}"


def assignment(node: str) -> str:
    """What is to run on ``node``: a subject whose last value counts."""
    return f"tidegate.assignment.{token(node)}"


def report(node: str) -> str:
    """Where the agent of ``node`` reports."""
    return f"tidegate.report.{token(node)}"


REPORTS = "tidegate.report.*"
HEARTBEATS = "tidegate.heartbeat.*"


def heartbeat(node: str) -> str:
    """Where the agent of ``node`` shows that it lives."""
    return f"tidegate.heartbeat.{token(node)}"


def question(service: str, name: str) -> str:
    """A question to a service's leader: ``question("gang_scheduler", "explain")``."""
    return f"tidegate.request.{service}.{name}"


def node_logs(node: str) -> str:
    """Requests for container logs to the agent of ``node``."""
    return f"tidegate.request.node_agent.{token(node)}.logs"
