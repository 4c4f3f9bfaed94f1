"""The decisions of every service, each with one line of meaning.

The tests compare them with the code in both directions; `docs/events.md` is made from them.
"""

from document_event import Event, Section
from document_job_events import JOBS
from document_node_events import NODES
from document_replica_events import REPLICAS

CLAIM = "the room that is kept for it, if any"


def _queue(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "queue_manager", meaning, carries)


def _place(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "gang_scheduler", meaning, carries)


SECTIONS = (
    *JOBS,
    Section(
        "Who may compete, and how much each queue deserves",
        (
            Event(
                "EntitlementsComputed",
                "queue_manager",
                "Demand or supply changed, and with it what queues deserve.",
                payload="`version`, and for each queue parent, weight, priority, reclaimable, open, deserved, guarantee, "
                "capability, strict_fifo, node_groups; of elastic quotas maximum and fixed; where queues are "
                "ordered by past use or level by level, `order`",
                heard_by=("gang_scheduler",),
            ),
            _queue("GroupAdmitted", "A gang may compete for room.", "STATUS PodGroup", "PATCH PodGroup"),
            _queue("GroupHeld", "A gang may not compete yet, and why.", "STATUS PodGroup"),
            _queue(
                "WorkloadAdmitted",
                "A pod, Job or Workload in a LocalQueue has its quota.",
                "PATCH subject",
                "STATUS subject",
            ),
            _queue(
                "WorkloadReserved",
                "Work in a LocalQueue has its quota, and waits for admission checks.",
                "PATCH subject",
                "STATUS subject",
            ),
            _queue(
                "WorkloadGrown",
                "A gang or Job in a LocalQueue has quota for more of its pods.",
                "PATCH PodGroup",
                "PATCH Job",
            ),
            _queue("WorkloadHeld", "There is no quota for a pod, gang, Job or Workload, and why.", "STATUS subject"),
            _queue(
                "WorkloadRevoked",
                "The quota of what runs is wanted back.",
                "PATCH Pod",
                "PATCH PodGroup",
                "PATCH Workload",
                "STATUS Workload",
            ),
            _queue(
                "WorkloadRequeued",
                "What does not run any more has given its quota back; it waits for it again, or stays away.",
                "PATCH subject",
                "STATUS PodGroup",
                "PATCH Workload",
                "STATUS Workload",
            ),
            _queue(
                "WorkloadsShown",
                "Workload objects show what work in LocalQueues asks for, has and waits for.",
                "CREATE Workload",
                "STATUS Workload",
                "DELETE Workload",
            ),
            _queue(
                "QuotaUseReported",
                "ClusterQueues, LocalQueues and Cohorts show what is used, borrowed and waited for.",
                "STATUS ClusterQueue",
                "STATUS LocalQueue",
                "STATUS Cohort",
            ),
            _queue(
                "ElasticQuotaUseReported",
                "Elastic quotas show what they use, ask for and may use.",
                "STATUS ElasticQuota",
            ),
            _queue("QueueOpened", "A queue takes new work.", "STATUS Queue", "PATCH Queue", "DELETE Command"),
            _queue(
                "QueueClosed",
                "A queue takes no new work, or has none left.",
                "STATUS Queue",
                "PATCH Queue",
                "DELETE Command",
            ),
            _queue("QueueCommandRefused", "A command asks for what a queue cannot do.", "DELETE subject"),
            _queue("QueueUseReported", "Queues show what they hold and what waits.", "STATUS Queue"),
        ),
    ),
    Section(
        "What a cluster begins with",
        (
            Event(
                "QueuesMade",
                "cluster_gateway",
                "On a cluster of Kubernetes the queues that every cluster has are made where they are missing.",
                ("CREATE Queue",),
            ),
        ),
    ),
    Section(
        "Where pods go",
        (
            _place(
                "GangPlaced",
                "The whole minimum of a gang is bound at once.",
                "BIND Pod",
                "PATCH PersistentVolumeClaim",
                "STATUS PodGroup",
                "STATUS ResourceClaim",
            ),
            _place(
                "SurplusPlaced",
                "More members of a gang that has started are bound.",
                "BIND Pod",
                "PATCH PersistentVolumeClaim",
                "STATUS PodGroup",
                "STATUS ResourceClaim",
            ),
            Event(
                "WaitExplained",
                "gang_scheduler",
                "A gang finds no room, and why.",
                ("STATUS Pod", "STATUS PodGroup"),
                payload=CLAIM,
            ),
            Event(
                "GangPreempted",
                "gang_scheduler",
                "Less important pods of the queue leave, so that a gang can start.",
                ("EVICT Pod", "STATUS Pod", "STATUS PodGroup"),
                payload=CLAIM,
            ),
            Event(
                "QueueReclaimed",
                "gang_scheduler",
                "Pods of other queues leave, as the gang's queue takes back what it deserves.",
                ("EVICT Pod", "STATUS Pod", "STATUS PodGroup"),
                payload=CLAIM,
            ),
            _place("ZoneCleared", "The hours of a revocable zone are over, so pods leave its nodes.", "EVICT Pod"),
            _place("WorkloadEvicted", "The quota of running pods was taken back, so they leave.", "EVICT Pod"),
            _place("ClaimReleased", "Pods have ended that had a resource claim.", "STATUS ResourceClaim"),
            Event(
                "ReservationPlaced",
                "gang_scheduler",
                "Room is held for the owners of a Reservation, or will be when pods have left it.",
                ("STATUS Reservation", "PATCH Pod"),
            ),
            _place("ReservationUsed", "A Reservation for one pod has been taken.", "STATUS Reservation"),
            _place(
                "ReservationObserved",
                "A Reservation shows its owners, its size, or why it waits.",
                "STATUS Reservation",
            ),
            _place("ReservationExpired", "Nothing is held for a Reservation any more.", "STATUS Reservation"),
            _place("ReservationCleared", "A Reservation that has been over for long goes.", "DELETE Reservation"),
            _place("GangObserved", "A gang's status follows its pods.", "STATUS PodGroup"),
        ),
    ),
    *NODES,
    *REPLICAS,
)

EVENTS = {event.name: event for section in SECTIONS for event in section.events}
