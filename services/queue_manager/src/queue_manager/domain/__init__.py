"""The pure core of queue_manager: the queue tree, fair shares, the gate before scheduling, the states of queues."""

from queue_manager.domain.core import QueueCore
from queue_manager.domain.policy import QueuePolicy

__all__ = ["QueueCore", "QueuePolicy"]
