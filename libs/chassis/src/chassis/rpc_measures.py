"""Measures every call that a gRPC server answers: how often, with which status, and for how long."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from grpc import HandlerCallDetails
from grpc.aio import ServerInterceptor

from chassis.measures import Measures

Continue = Callable[[HandlerCallDetails], Awaitable[Any]]


class RpcMeasures(ServerInterceptor):
    """Labels are methods that the server has and standard statuses: nothing that a caller can make up."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures

    async def intercept_service(self, continuation: Continue, handler_call_details: HandlerCallDetails) -> Any:
        """The handler of a call, measured."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = str(handler_call_details.method).rpartition("/")[2]
        answer = handler.stream_stream or handler.unary_stream or handler.stream_unary or handler.unary_unary

        async def single(request: Any, context: Any) -> Any:
            with self._timed(method, context):
                return await answer(request, context)

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            with self._timed(method, context):
                async for message in answer(request, context):
                    yield message

        make = _MAKERS[handler.request_streaming, handler.response_streaming]
        measured = stream if handler.response_streaming else single
        return make(measured, handler.request_deserializer, handler.response_serializer)

    @contextmanager
    def _timed(self, method: str, context: Any) -> Iterator[None]:
        started, code = time.perf_counter(), "UNKNOWN"
        try:
            yield
            code = "OK"
        except (GeneratorExit, Exception):
            code = _name(context.code())
            raise
        except BaseException:  # the caller has gone, or the server goes
            code = grpc.StatusCode.CANCELLED.name
            raise
        finally:
            self._measures.calls.labels(method, code).inc()
            self._measures.call_seconds.labels(method).observe(time.perf_counter() - started)


_MAKERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


def _name(code: Any) -> str:
    """The name of a status, which comes as such or as its number; what failed without one is UNKNOWN."""
    name = code.name if isinstance(code, grpc.StatusCode) else _CODES.get(code, "UNKNOWN")
    return "UNKNOWN" if name == "OK" else name
