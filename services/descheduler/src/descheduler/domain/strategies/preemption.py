"""Room for a migration whose reservation finds none: less important pods are moved out of its way, each to a place of its own.

Koordinator names such an option, says that it reserves resources for those who are displaced, and does nothing about it.
"""

from descheduler.domain.migration.migration_book import MigrationBook
from descheduler.domain.migration.successors import as_reserved
from descheduler.domain.plan import Plan
from descheduler.domain.strategies.defragmentation import MOST_MOVES, clear, take_over
from descheduler.domain.strategies.waiting_gangs import WaitingGang

NAME = "Preemption"


def make_room(plan: Plan, book: MigrationBook) -> None:
    """For each migration that lacks room and may displace others, by name."""
    for job in book.lacking_room():
        waiting, trial = WaitingGang(f"migration {job.name}", (as_reserved(book.store, job),)), plan.fork()
        others = [node for node in plan.view.nodes() if node.name != job.left_node]
        if clear(trial, waiting, MOST_MOVES, others, NAME):
            take_over(plan, trial, waiting, trial.moves[len(plan.moves) :])
        else:
            plan.notes.append(f"{waiting.name}: no {MOST_MOVES} moves would make room for its pod")
