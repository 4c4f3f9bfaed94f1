"""What this service is to the others."""

from chassis import Role

ROLE = Role("queue_manager", queries=("explain", "queue", "settings"))
