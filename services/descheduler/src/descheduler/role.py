"""What this service is to the others."""

from chassis import Role

ROLE = Role("descheduler", queries=("plan", "settings"))
