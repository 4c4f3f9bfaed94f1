"""What the service is told when it starts."""

from dataclasses import dataclass

from chassis.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``gateway_host`` and ``gateway_port`` are where requests come in, over HTTP/1.1 and HTTP/2; those of
    pods also at the port 80 of ``inner_host``, where there is one.

    ``domain`` is what hosts end with: ``<service>.<namespace>.<domain>``. While no replica is ready at most ``hold_requests``
    wait for one pool, ``hold_requests_total`` for all, none longer than ``hold_seconds``. With one of ``workers`` (threads of the proxy)
    splits and limits are exact; with more, each splits exactly by itself. When told to stop, answers get ``drain_seconds``.
    """

    gateway_host: str = "127.0.0.1"
    gateway_port: int = 7480
    inner_host: str = ""
    domain: str = "example.com"
    hold_requests: int = 1000
    hold_requests_total: int = 10_000
    hold_seconds: int = 600
    workers: int = 1
    drain_seconds: int = 10
