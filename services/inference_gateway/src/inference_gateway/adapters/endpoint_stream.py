"""Tells the proxy where the replicas are: Envoy's discovery protocol, for endpoints alone, over gRPC."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage

from inference_gateway.domain.envoy.clusters import Place
from tidegate.proxy.v1 import discovery_pb2

_SERVICE, _METHOD = "envoy.service.discovery.v3.AggregatedDiscoveryService", "StreamAggregatedResources"
_TYPE = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

Places = tuple[Place, ...]


class EndpointStream:
    """What is to be told, and what the proxy has taken in. Of several proxies the one that came last counts."""

    def __init__(self) -> None:
        self._places: dict[str, Places] = {}
        self._taken: dict[str, Places] = {}
        self._changed = asyncio.Event()
        self.refused = 0

    def put(self, places: Mapping[str, Places]) -> None:
        """The endpoints of all clusters from now on."""
        if places != self._places:
            self._places = {**places}
            self._wake()

    async def is_taken_in(self) -> None:
        """Return once the proxy knows all of it."""
        while any(self._taken.get(name) != places for name, places in self._places.items()):
            await self._changed.wait()

    async def serve(self, socket: str) -> None:
        """Listen on ``socket``, for ever."""
        handler = grpc.stream_stream_rpc_method_handler(
            self._stream,
            request_deserializer=discovery_pb2.DiscoveryRequest.FromString,
            response_serializer=discovery_pb2.DiscoveryResponse.SerializeToString,
        )
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler}),))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        try:
            await server.wait_for_termination()
        finally:
            await server.stop(None)

    def _wake(self) -> None:
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    async def _stream(
        self, requests: AsyncIterator[discovery_pb2.DiscoveryRequest], context: object
    ) -> AsyncIterator[discovery_pb2.DiscoveryResponse]:
        told = _Told()
        self._taken = told.taken
        reading = asyncio.create_task(self._read(requests, told), name="proxy's wishes")
        try:
            while not reading.done():
                changed = self._changed
                news = {name: self._places[name] for name in told.wishes(self._places)}
                if news:
                    yield _response(news, told.say(news))
                else:
                    await changed.wait()
        finally:
            reading.cancel()

    async def _read(self, requests: AsyncIterator[discovery_pb2.DiscoveryRequest], told: "_Told") -> None:
        async for request in requests:
            if request.type_url == _TYPE:
                self.refused += request.HasField("error_detail")
                told.hear(request)
                self._wake()
        self._wake()


class _Told:
    """What one proxy was told: ``taken`` is what it said that it has understood."""

    def __init__(self) -> None:
        self.taken: dict[str, Places] = {}
        self._wanted: set[str] = set()
        self._sent: dict[str, Places] = {}
        self._open: dict[str, dict[str, Places]] = {}
        self._numbers = itertools.count(1)

    def wishes(self, places: Mapping[str, Places]) -> list[str]:
        """What it wants and does not have yet."""
        return sorted(name for name in self._wanted & places.keys() if self._sent.get(name) != places[name])

    def say(self, news: Mapping[str, Places]) -> str:
        """It is being told; the nonce of that."""
        nonce = str(next(self._numbers))
        self._open[nonce] = {**news}
        self._sent.update(news)
        return nonce

    def hear(self, request: discovery_pb2.DiscoveryRequest) -> None:
        """An answer to what was said; or a wish, which stands for all that is wanted: a cluster that was made anew has nothing."""
        self._wanted = {*request.resource_names}
        answered = self._open.pop(request.response_nonce, None)
        if answered is None:
            self._sent.clear()
        elif not request.HasField("error_detail"):
            self.taken.update(answered)


def _response(news: Mapping[str, Places], nonce: str) -> discovery_pb2.DiscoveryResponse:
    found = discovery_pb2.DiscoveryResponse(version_info=nonce, type_url=_TYPE, nonce=nonce)
    found.resources.extend(
        AnyMessage(type_url=_TYPE, value=_assignment(name, places).SerializeToString()) for name, places in news.items()
    )
    return found


def _assignment(name: str, places: Places) -> discovery_pb2.ClusterLoadAssignment:
    endpoints = [discovery_pb2.LbEndpoint(endpoint=discovery_pb2.Endpoint(address=_address(place))) for place in places]
    group = discovery_pb2.LocalityLbEndpoints(lb_endpoints=endpoints)
    return discovery_pb2.ClusterLoadAssignment(cluster_name=name, endpoints=[group])


def _address(place: Place) -> discovery_pb2.Address:
    if not place.port:
        return discovery_pb2.Address(pipe=discovery_pb2.Pipe(path=place.address))
    return discovery_pb2.Address(
        socket_address=discovery_pb2.SocketAddress(address=place.address, port_value=place.port)
    )
