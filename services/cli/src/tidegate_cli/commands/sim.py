"""``tidegate sim``: scenarios in virtual time, against the same services that run live."""

from tidegate_cli.sim.command import sim_command
from tidegate_cli.sim.world import open_world

sim = sim_command(open_world)
