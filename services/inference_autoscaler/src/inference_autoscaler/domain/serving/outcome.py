"""What a look at an InferenceService comes to."""

from dataclasses import dataclass, field

from inference_autoscaler.domain.rollout.trial import BACK, PROMOTED, Trial
from inference_autoscaler.domain.serving.rollout import Rollout
from kube import Manifest, Mutation


@dataclass(slots=True)
class Outlook:
    """``changes`` are what has to happen to its children, ``sizes`` in words which revision gets how many pods and why.

    ``is_serving`` says that requests are answered, or would be as soon as one comes; ``is_awake`` that it has to be looked at
    again without being told.
    """

    changes: list[Mutation] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    rollout: Rollout | None = None
    trial: Trial | None = None
    is_serving: bool = False
    is_awake: bool = False
    stopped: bool = False
    trouble: str = ""
    reason: str = "InvalidPredictorSpec"

    def model_status(self) -> Manifest:
        """How far the model is; None takes away what is no longer so."""
        if self.trouble:
            return {
                "transitionStatus": "InvalidSpec",
                "lastFailureInfo": {"reason": self.reason, "message": self.trouble},
            }
        return {"transitionStatus": "UpToDate" if self.is_serving else "InProgress", "lastFailureInfo": None}

    def conditions(self) -> list[Manifest]:
        """In KServe's words."""
        if self.stopped:
            ready = ("False", "Stopped", "the service is stopped")
        elif self.trouble:
            ready = ("False", self.reason, self.trouble)
        elif self.is_serving:
            ready = ("True", "MinimumReplicasAvailable", "requests are answered")
        else:
            ready = ("Unknown", "MinimumReplicasUnavailable", "no pod of it serves yet")
        stopped = ("True", "Stopped", "the annotation serving.kserve.io/stop says so") if self.stopped else None
        named = {"PredictorReady": ready, "Ready": ready, "Stopped": stopped or ("False", "NotStopped", "it runs")}
        if self.trial is not None:
            status = {PROMOTED: "True", BACK: "False"}.get(self.trial.state, "Unknown")
            named["RolledOut"] = (status, self.trial.reason, f"{self.trial.revision}: {self.trial.words}")
        return [
            {"type": name, "status": status, "reason": reason, "message": message}
            for name, (status, reason, message) in named.items()
        ]
