"""Traces that span services: a span's context travels in the bus's headers (W3C ``traceparent``).

OpenTelemetry's SDK is loaded only when traces are wanted: it costs a tenth of a second and 15 MiB in each process.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

TRACEPARENT = "traceparent"


class Tracer(Protocol):
    """Makes spans. ``carrier()`` is what a message has to carry for the next service to go on with the trace."""

    def span(self, name: str, parent: Mapping[str, str] | None = None, **attributes: Any) -> Any: ...

    def carrier(self) -> dict[str, str]: ...

    def close(self) -> None: ...


class NoTracer:
    """Traces nothing."""

    @contextmanager
    def span(self, name: str, parent: Mapping[str, str] | None = None, **attributes: Any) -> Iterator[None]:
        yield

    def carrier(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


class FileTracer:
    """Writes each finished span as one JSON line."""

    def __init__(self, service: str, file: Path) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("a", buffering=1)
        exporter = ConsoleSpanExporter(
            service_name=service, out=self._file, formatter=lambda span: json.dumps(json.loads(span.to_json())) + "\n"
        )
        self._provider = TracerProvider(resource=Resource.create({"service.name": service}), shutdown_on_exit=False)
        self._provider.add_span_processor(SimpleSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("tidegate")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(self, name: str, parent: Mapping[str, str] | None = None, **attributes: Any) -> Iterator[None]:
        context = self._propagator.extract(parent) if parent else None
        with self._tracer.start_as_current_span(name, context=context, attributes=attributes):
            yield

    def carrier(self) -> dict[str, str]:
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier

    def close(self) -> None:
        self._provider.shutdown()
        self._file.close()


def make_tracer(service: str, where: str, data_dir: Path) -> Tracer:
    """The tracer that the setting ``trace`` asks for; raises ValueError for an unknown one."""
    if where == "off":
        return NoTracer()
    if where == "file":
        return FileTracer(service, data_dir / "traces" / f"{service}.jsonl")
    raise ValueError(f"trace: {where!r} is neither off nor file")
