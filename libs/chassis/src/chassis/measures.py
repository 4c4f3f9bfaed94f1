"""What every service measures, for Prometheus. Labels are enums; ids never are."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Measures:
    """The metrics of one service in a registry of its own, so that several services can live in one process."""

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        prefix = f"tidegate_{service}"
        self._prefix = prefix
        self.facts = Counter(f"{prefix}_facts_total", "Change sets folded.", registry=self.registry)
        self.decisions = Counter(
            f"{prefix}_decisions_total", "Decisions made, by their name.", ["name"], registry=self.registry
        )
        self.outcomes = Counter(
            f"{prefix}_outcomes_total", "What came of decisions.", ["name", "applied"], registry=self.registry
        )
        self.decide_seconds = Histogram(
            f"{prefix}_decide_seconds", "One call of the deciding function.", buckets=_SECONDS, registry=self.registry
        )
        self.commit_seconds = Histogram(
            f"{prefix}_commit_seconds", "Storing one commit.", buckets=_SECONDS, registry=self.registry
        )
        self.parked = Counter(f"{prefix}_parked_total", "Messages that could not be handled.", registry=self.registry)
        self.calls = Counter(
            f"{prefix}_calls_total", "gRPC calls answered.", ["method", "code"], registry=self.registry
        )
        self.call_seconds = Histogram(
            f"{prefix}_call_seconds",
            "One gRPC call; a stream is one for as long as it lasts.",
            ["method"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.revision = Gauge(f"{prefix}_revision", "The revision that was folded last.", registry=self.registry)
        self.in_flight = Gauge(f"{prefix}_in_flight", "Decisions without an outcome.", registry=self.registry)

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """One more figure, read whenever somebody looks: ``name`` is noun and unit, ``text`` says what it is."""
        Gauge(f"{self._prefix}_{name}", text, registry=self.registry).set_function(read)
