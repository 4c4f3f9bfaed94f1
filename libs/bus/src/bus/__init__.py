"""The message bus: logs with one writer, values, requests, leases. Real (NATS JetStream) and in memory, one contract."""

from bus.memory import MemoryBus
from bus.ports import (
    Bus,
    BusError,
    Entry,
    Lease,
    Log,
    NoResponder,
    Parked,
    RequestFailed,
    StaleWriter,
    Subscription,
)

__all__ = [
    "Bus",
    "BusError",
    "Entry",
    "Lease",
    "Log",
    "MemoryBus",
    "NoResponder",
    "Parked",
    "RequestFailed",
    "StaleWriter",
    "Subscription",
]
