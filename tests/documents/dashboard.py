"""The dashboard for Grafana, made from a table of panels; a test looks whether services have what it shows."""

from typing import Any, NamedTuple

DECIDING = ("job_controller", "queue_manager", "gang_scheduler")
WIDTH, HEIGHT, ROW = 8, 8, 24


_WRITTEN = "max(tidegate_cluster_gateway_revision)"


class Panel(NamedTuple):
    """A graph. ``queries`` are expressions with the text that tells their lines apart."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    says: str


def _each(services: tuple[str, ...], expression: str, legend: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((expression.replace("SERVICE", service), f"{service} {legend}".strip()) for service in services)


def _p99(services: tuple[str, ...], name: str) -> tuple[tuple[str, str], ...]:
    return _each(services, f"histogram_quantile(0.99, sum by (le) (rate(tidegate_SERVICE_{name}_bucket[5m])))")


PANELS = (
    Panel(
        "Pods placed, gangs let in: decisions",
        "ops",
        _each(DECIDING, "sum by (name) (rate(tidegate_SERVICE_decisions_total[5m]))", "{{name}}"),
        "What services decide, by the name of the decision (docs/events.md).",
    ),
    Panel(
        "Decisions that were refused",
        "ops",
        _each(DECIDING, 'sum by (name) (rate(tidegate_SERVICE_outcomes_total{applied="false"}[5m]))', "{{name}}"),
        "By the cluster: it had changed meanwhile, a quota or a disruption budget forbade it.",
    ),
    Panel(
        "Decisions on their way",
        "short",
        _each(DECIDING, "max(tidegate_SERVICE_in_flight)"),
        "Without an outcome yet. A line that stays up: the gateway does not get on.",
    ),
    Panel("Time to decide, p99", "s", _p99(DECIDING, "decide_seconds"), "One call of the deciding function."),
    Panel("Time to store a commit, p99", "s", _p99(DECIDING, "commit_seconds"), "The message bus and its disk."),
    Panel(
        "Behind the facts",
        "short",
        (
            *_each(DECIDING, f"{_WRITTEN} - max(tidegate_SERVICE_revision)"),
            (f"{_WRITTEN} - max(tidegate_admission_revision_seen)", "admission"),
        ),
        "Change sets that a service has not read yet.",
    ),
    Panel(
        "Change sets",
        "ops",
        _each(DECIDING, "rate(tidegate_SERVICE_facts_total[5m])", "{{pod}}"),
        "What changes in the cluster, as each service reads it.",
    ),
    Panel(
        "Put aside",
        "short",
        _each(("cluster_gateway", *DECIDING), "sum(increase(tidegate_SERVICE_parked_total[1h]))"),
        "Messages and objects that could not be handled, in the last hour: `tidegate events --dead`.",
    ),
    Panel(
        "Calls of the API, p99",
        "s",
        (
            (
                "histogram_quantile(0.99, sum by (le, method) (rate(tidegate_admission_call_seconds_bucket[5m])))",
                "{{method}}",
            ),
        ),
        "A watch is one call for as long as it lasts.",
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana reads it. It asks which Prometheus is meant."""
    source = {"type": "prometheus", "uid": "${source}"}
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": panel.title,
            "description": panel.says,
            "datasource": source,
            "gridPos": {
                "x": number * WIDTH % ROW,
                "y": number * WIDTH // ROW * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            },
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend, "datasource": source}
                for index, (expression, legend) in enumerate(panel.queries)
            ],
        }
        for number, panel in enumerate(PANELS)
    ]
    choice = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": "tidegate",
        "title": "Tidegate",
        "tags": ["tidegate"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [choice]},
        "panels": panels,
    }
