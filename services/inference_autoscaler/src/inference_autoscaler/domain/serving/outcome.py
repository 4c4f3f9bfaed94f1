"""What a look at an InferenceService comes to."""

from dataclasses import dataclass, field

from inference_autoscaler.domain.rollout.trial import Trial
from inference_autoscaler.domain.serving.rollout import Rollout
from kube import Mutation


@dataclass(frozen=True, slots=True)
class Standing:
    """How one component is: ``is_serving`` says that requests are answered, or would be as soon as one comes.

    ``name`` is the Deployment or revision whose pods are looked at, ``serving`` how many serve in all.
    """

    name: str
    is_serving: bool
    serving: int
    rollout: Rollout | None = None


@dataclass(slots=True)
class Outlook:
    """``changes`` are what has to happen to its children, ``sizes`` in words which revision gets how many pods and why.

    ``is_awake`` says that it has to be looked at again without being told. ``trouble`` is why nothing can be made of it.
    """

    changes: list[Mutation] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Of each Deployment that is sized here how many it is to have and why, whether that is another size or not."""

    standings: dict[str, Standing] = field(default_factory=dict)
    canaries: dict[str, bool] = field(default_factory=dict)
    """Those in standard mode, and whether a pod of each serves."""

    routes: list[Mutation] = field(default_factory=list)
    """What has to happen to what leads requests to it from outside."""

    unrouted: str = ""
    """Why requests from outside do not come to it yet, where something is to lead them."""

    goal: tuple[str, str, str] | None = None
    """Whether a goal that it states decides: status, reason and message. None where it states none."""

    trial: Trial | None = None
    is_awake: bool = False
    stopped: bool = False
    trouble: str = ""
    reason: str = "InvalidPredictorSpec"

    @property
    def rollouts(self) -> dict[str, Rollout]:
        """Of each component that has revisions."""
        return {role: one.rollout for role, one in self.standings.items() if one.rollout is not None}
