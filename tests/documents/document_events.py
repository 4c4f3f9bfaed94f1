"""The decisions of every service, each with one line of meaning.

The tests compare them with the code in both directions; `docs/events.md` is made from them.
"""

from dataclasses import dataclass, field

SUBJECT = "subject"
"""Stands for the kind of the object that a decision is about."""


@dataclass(frozen=True, slots=True)
class Event:
    """A decision. ``carries`` are its changes, ``VERB Kind``; ``payload`` is what it tells other services besides."""

    name: str
    service: str
    meaning: str
    carries: tuple[str, ...] = ()
    payload: str = ""
    heard_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Decisions that belong together."""

    title: str
    events: tuple[Event, ...] = field(default=())


CLAIM = "the room that is kept for it, if any"
_VOLCANO = ("STATUS subject", "PATCH PodGroup", "CREATE Pod", "DELETE Pod", "DELETE Command")
_STOPPED = ("STATUS subject", "DELETE Pod", "DELETE PodGroup", "DELETE Command")
_SET_STOPPED = ("STATUS subject", "PATCH Job", "DELETE Job", "DELETE PodGroup")
_TRAINING = ("STATUS subject", "PATCH PodGroup", "CREATE Service", "CREATE Pod", "DELETE Pod", "PATCH ConfigMap")
_ENDED = ("STATUS subject", "DELETE Pod", "DELETE PodGroup", "DELETE Service", "PATCH Job", "DELETE Job")
_SET = (
    "STATUS subject",
    "CREATE Job",
    "PATCH Job",
    "DELETE Job",
    "CREATE Service",
    "CREATE PodGroup",
    "PATCH PodGroup",
)


def _job(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "job_controller", meaning, carries)


def _queue(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "queue_manager", meaning, carries)


def _place(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "gang_scheduler", meaning, carries)


def _move(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "descheduler", meaning, carries)


def _size(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "inference_autoscaler", meaning, carries)


def _slo(name: str, meaning: str, *carries: str) -> Event:
    return Event(name, "slo_controller", meaning, carries)


SECTIONS = (
    Section(
        "Which pods a job needs: Volcano",
        (
            _job(
                "HostsChanged",
                "The lists of hosts that the job's pods see follow a change.",
                "PATCH ConfigMap",
                *_VOLCANO,
            ),
            _job("JobRestarted", "A policy restarts a pod, a task or the job.", *_STOPPED),
            _job("JobAborted", "The job stands still: suspended, or stopped by a policy.", *_STOPPED),
            _job("JobResumed", "A suspended job begins its next run.", *_STOPPED),
            _job(
                "JobTerminated",
                "A policy or a command ended the job, or what it needs was refused 15 times.",
                *_STOPPED,
            ),
            _job("JobCompleted", "The job has done what it had to.", *_STOPPED),
            _job("CommandTaken", "A command was taken that asks for nothing new.", *_VOLCANO),
            _job("CommandDropped", "A command names a job that is not there.", "DELETE subject"),
            _job(
                "RunStarted", "A CronJob's time has come: it makes a job.", "CREATE Job", "DELETE Job", "STATUS subject"
            ),
            _job("RunHeldBack", "A CronJob's run waits for the one before.", "DELETE Job", "STATUS subject"),
            _job("RunMissed", "A CronJob's run is later than its deadline allows.", "DELETE Job", "STATUS subject"),
            _job(
                "RunsDropped",
                "Jobs of a CronJob go: replaced, or beyond its history.",
                "DELETE Job",
                "CREATE Job",
                "STATUS subject",
            ),
            _job("ScheduleRefused", "A CronJob's schedule cannot be read.", "STATUS subject"),
            _job("CronStatusChanged", "A CronJob's status follows its jobs.", "STATUS subject"),
            _job("FlowJobsWanted", "Steps of a JobFlow whose turn has come are made.", "CREATE Job", "STATUS subject"),
            _job("FlowJobsDropped", "A JobFlow that has succeeded does not keep its jobs.", "DELETE Job"),
            _job("FlowStatusChanged", "A JobFlow's status follows its jobs.", "STATUS subject"),
            _job("TemplateUsed", "A JobTemplate lists the jobs made from it.", "STATUS subject"),
        ),
    ),
    Section(
        "Which pods a job needs: Kubeflow and JobSet",
        (
            _job(
                "GroupDeleted",
                "Nothing of a finished TrainJob runs: its gang goes.",
                "DELETE PodGroup",
                "STATUS subject",
            ),
            _job("PodsRestarted", "Failed pods are tried again.", "DELETE Job", *_TRAINING),
            _job("PodsCleanedUp", "The clean pod policy of a finished job is done.", *_ENDED),
            _job("JobSucceeded", "The job has done what it had to.", *_ENDED),
            _job("JobSuspended", "The job stands still; its pods and its gang go.", *_ENDED),
            _job(
                "JobSetCreated",
                "A TrainJob becomes a JobSet of its runtime.",
                "CREATE JobSet",
                "STATUS subject",
                "PATCH PodGroup",
            ),
            _job("JobsCreated", "Jobs of a JobSet whose turn has come are made.", *_SET),
            _job("JobsResumed", "The jobs of a JobSet go on.", *_SET),
            _job(
                "JobsDeleted",
                "Jobs of a JobSet go: it is finished, or was scaled while it was suspended.",
                *_SET_STOPPED,
                *_SET,
            ),
            _job("JobSetSuspended", "The jobs of a JobSet stand still.", *_SET_STOPPED),
            _job("JobSetRestarted", "The failure policy begins all jobs anew.", *_SET),
            _job("JobSetCompleted", "The JobSet's success policy is met.", *_SET_STOPPED),
            _job("JobSetFailed", "The JobSet's failure policy ends it.", *_SET_STOPPED),
            _job("JobSetExpired", "The JobSet's time after its end is over.", "DELETE subject"),
            _job("TrainJobCompleted", "The JobSet of a TrainJob has completed.", "STATUS subject", "DELETE PodGroup"),
            _job(
                "TrainJobFailed",
                "The JobSet failed, the deadline is over, or there is no runtime.",
                "STATUS subject",
                "DELETE PodGroup",
                "DELETE JobSet",
            ),
            _job(
                "TrainJobResized",
                "A TrainJob has another number of nodes: its JobSet is made anew.",
                "STATUS subject",
                "DELETE JobSet",
                "CREATE PodGroup",
                "PATCH PodGroup",
                "PATCH ConfigMap",
            ),
            _job(
                "TrainJobSuspended",
                "The JobSet of a TrainJob is to stand still.",
                "STATUS subject",
                "PATCH JobSet",
                "DELETE PodGroup",
            ),
            _job(
                "TrainJobResumed",
                "The JobSet of a TrainJob is to go on.",
                "STATUS subject",
                "PATCH JobSet",
                "CREATE PodGroup",
            ),
        ),
    ),
    Section(
        "Which pods a job needs: all kinds of jobs",
        (
            _job(
                "PodGroupWanted",
                "A new job asks its queue to let its gang in.",
                "CREATE PodGroup",
                "CREATE ConfigMap",
                "CREATE Secret",
                "CREATE NetworkPolicy",
                "CREATE PersistentVolumeClaim",
                "CREATE HorizontalPodAutoscaler",
                "CREATE JobSet",
                "PATCH JobSet",
                "DELETE Command",
                *_TRAINING,
            ),
            _job(
                "PodGroupChanged", "The job needs another minimum now.", "CREATE JobSet", "DELETE Command", *_TRAINING
            ),
            _job(
                "PodsWanted",
                "The job has been let in, and pods of it are missing.",
                "CREATE Job",
                "DELETE Command",
                *_TRAINING,
            ),
            _job(
                "PodsDropped",
                "The job was scaled down; the pods that are too many go.",
                "DELETE Service",
                "DELETE Command",
                *_TRAINING,
            ),
            _job("RefusalNoted", "What is decided about the job is refused over and over.", "STATUS subject"),
            _job("JobFailed", "The job has failed for good.", "DELETE Command", *_ENDED),
            _job("JobExpired", "The job's time after its end is over.", "DELETE subject", *_ENDED),
            _job(
                "JobStatusChanged",
                "The job's status follows its pods, and small things that it owns follow the job.",
                "CREATE HorizontalPodAutoscaler",
                *_ENDED,
                *_TRAINING,
            ),
        ),
    ),
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
    Section(
        "How many replicas, and which revision gets what share",
        (
            _size(
                "ReplicasScaled",
                "A workload gets another size, by what its autoscaler's metrics, its triggers, or the load of its service ask for.",
                "CREATE HorizontalPodAutoscaler",
                "PATCH HorizontalPodAutoscaler",
                "PATCH Deployment",
                "PATCH StatefulSet",
                "PATCH ReplicaSet",
                "DELETE Deployment",
                "DELETE Service",
                "PATCH HTTPRoute",
                "PATCH Ingress",
                "PATCH Service",
                "STATUS subject",
            ),
            _size(
                "InferenceServiceMade",
                "An inference service gets what it consists of: a revision of a component, or in standard mode a Deployment, a "
                "Service and what scales it.",
                "CREATE Deployment",
                "CREATE Service",
                "CREATE HorizontalPodAutoscaler",
                "CREATE ScaledObject",
                "CREATE HTTPRoute",
                "CREATE Ingress",
                "PATCH Deployment",
                "PATCH Service",
                "PATCH HorizontalPodAutoscaler",
                "PATCH ScaledObject",
                "PATCH HTTPRoute",
                "PATCH Ingress",
                "DELETE Deployment",
                "DELETE Service",
                "DELETE HorizontalPodAutoscaler",
                "DELETE ScaledObject",
                "DELETE HTTPRoute",
                "DELETE Ingress",
                "STATUS subject",
            ),
            _size(
                "TrafficSplit",
                "A revision is ready, taken a step further or taken back, or another share is wanted: who gets how much of the "
                "requests, and by which figures.",
                "CREATE HTTPRoute",
                "CREATE Ingress",
                "CREATE Service",
                "PATCH HTTPRoute",
                "PATCH Ingress",
                "PATCH Service",
                "PATCH Deployment",
                "DELETE Deployment",
                "DELETE Service",
                "DELETE HorizontalPodAutoscaler",
                "DELETE ScaledObject",
                "DELETE HTTPRoute",
                "DELETE Ingress",
                "STATUS subject",
            ),
            _size(
                "ServingExplained",
                "An inference service says how it is, and why; a stopped one gives up what it consists of.",
                "DELETE Deployment",
                "DELETE Service",
                "DELETE HorizontalPodAutoscaler",
                "DELETE ScaledObject",
                "DELETE HTTPRoute",
                "DELETE Ingress",
                "STATUS subject",
            ),
            _size(
                "ScalingExplained",
                "The size stays, and the autoscaler says by what, or why nothing can be said.",
                "CREATE HorizontalPodAutoscaler",
                "PATCH HorizontalPodAutoscaler",
                "STATUS subject",
            ),
        ),
    ),
)

EVENTS = {event.name: event for section in SECTIONS for event in section.events}
