"""The decisions about what should move, and what may be lent."""

from document_event import Event, Section


def _move(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "descheduler", meaning, carries)


def _slo(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "slo_controller", meaning, carries)


NODES = (
    Section(
        "What should move",
        (
            _move(
                "MoveProposed", "A plan wants a pod elsewhere: the reason names the strategy.", "CREATE PodMigrationJob"
            ),
            _move(
                "DeletionCostSet",
                "What it costs to delete a pod, so that a workload that shrinks empties nodes.",
                "PATCH subject",
            ),
            _move("MigrationHeld", "A migration waits for its turn, and why.", "STATUS subject"),
            _move(
                "MigrationStarted",
                "A migration may go on; where a reservation comes first it is made.",
                "PATCH subject",
                "CREATE Reservation",
                "STATUS subject",
            ),
            _move("MigrationObserved", "A migration shows how far it is.", "STATUS subject"),
            _move(
                "PodMigrated",
                "The pod of a migration leaves its node.",
                "EVICT Pod",
                "DELETE Pod",
                "PATCH Pod",
                "STATUS subject",
            ),
            _move("MigrationSucceeded", "The pod has moved.", "STATUS subject"),
            _move(
                "MigrationFailed",
                "A migration is given up, and what was reserved for it goes.",
                "STATUS subject",
                "DELETE Reservation",
            ),
            _move("MigrationCleared", "A migration that has been over for an hour goes.", "DELETE subject"),
        ),
    ),
    Section(
        "How much may be lent on each node, and under which rules",
        (
            _slo(
                "SloConfigRefused",
                "The configuration of nodes holds what makes no sense; what is in force stays so.",
                "PATCH ConfigMap",
            ),
            _slo("SloConfigMended", "All of the configuration of nodes makes sense again.", "PATCH ConfigMap"),
            _slo(
                "NodeSLOComputed",
                "The rules of a node follow from the strategies that select it.",
                "CREATE NodeSLO",
                "PATCH NodeSLO",
            ),
            _slo("PodEvictedForNode", "A node is short of something, so a pod that it names leaves it.", "EVICT Pod"),
            _slo(
                "LendingComputed",
                "So much of a node may be lent to batch and mid work, by these terms.",
                "STATUS subject",
                "PATCH subject",
                "PATCH NodeResourceTopology",
            ),
            _slo(
                "LendingStopped",
                "Nothing of a node is lent any more: nothing was measured for long, or nobody wants it.",
                "STATUS subject",
                "PATCH subject",
                "PATCH NodeResourceTopology",
            ),
            _slo("NodeRatiosComputed", "How much a core counts for, and what is given out of a node.", "PATCH subject"),
            _slo(
                "RecommendationComputed",
                "What the containers of a workload should ask for, by what they used.",
                "STATUS Recommendation",
            ),
        ),
    ),
)
