"""The jobs of the demo: which file of examples/ each is, and what it is there to show."""

from dataclasses import dataclass

from kube import Key

VOLCANO_JOB = "Job.batch.volcano.sh"
PYTORCH_JOB = "PyTorchJob.kubeflow.org"


@dataclass(frozen=True, slots=True)
class Act:
    """One job. ``kind`` is for people, ``pods`` is how many it has."""

    file: str
    key: Key
    kind: str
    pods: int
    about: str

    @property
    def name(self) -> str:
        return self.key.name


RING = Act(
    "ring-allreduce.yaml",
    Key(VOLCANO_JOB, "default", "ring-allreduce"),
    "Volcano Job",
    4,
    "a master and three workers add up their vectors in a ring of sockets",
)
TORCH = Act(
    "pytorchjob.yaml",
    Key(PYTORCH_JOB, "default", "pytorch"),
    "PyTorchJob",
    3,
    "a master and two workers meet by MASTER_ADDR, RANK and WORLD_SIZE, and train one weight",
)
RESTARTS = Act(
    "restart-policy.yaml",
    Key(VOLCANO_JOB, "default", "restart-policy"),
    "Volcano Job",
    2,
    "two workers that keep checkpoints; one of them will be killed",
)
WIDE = Act(
    "wide-gang.yaml",
    Key(VOLCANO_JOB, "default", "wide-gang"),
    "Volcano Job",
    5,
    "five pods that need five CPUs at once",
)
CAST = (RING, TORCH, RESTARTS, WIDE)

VICTIM = "restart-policy-worker-1"
"""The pod whose process the demo kills."""
