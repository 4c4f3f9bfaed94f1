"""The decisions about which pods a job needs."""

from document_event import Event, Section

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


JOBS = (
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
)
