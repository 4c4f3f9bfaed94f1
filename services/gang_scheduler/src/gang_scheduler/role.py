"""What this service is to the others."""

from chassis import Role

ROLE = Role("gang_scheduler", inputs=("queue_manager",), queries=("explain", "settings"))
