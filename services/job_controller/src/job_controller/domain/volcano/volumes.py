"""The volumes of a Volcano Job: claims that it makes, and claims of others that it waits for."""

import hashlib

from job_controller.domain.volcano.ownership import owned
from job_controller.domain.volcano.turn import Turn
from kube import Key, Manifest, Object

CLAIM = "PersistentVolumeClaim"


def claim_name(job: Object, index: int, volume: Manifest) -> str:
    """The name of the claim behind a volume: the one given, else one that follows from the job's uid and the place."""
    given = volume.get("volumeClaimName")
    if given:
        return str(given)
    return f"{job.name}-pvc-{hashlib.sha256(f'{job.uid}/{index}'.encode()).hexdigest()[:12]}"


def ensure_volumes(turn: Turn) -> str | None:
    """Make the claims that the job describes; what is missing, in words, when a claim that it only names is not there."""
    controlled: dict[str, str] = {}
    for index, volume in enumerate(turn.spec.volumes):
        name = claim_name(turn.job, index, volume)
        controlled[f"volume-pvc-{name}"] = name
        if turn.view.get(Key(CLAIM, turn.job.namespace, name)) is not None:
            continue
        if not volume.get("volumeClaim"):
            return f"PersistentVolumeClaim {name} for {volume.get('mountPath')} is not there"
        turn.create(_claim(turn, name, volume["volumeClaim"]))
    turn.controlled = controlled
    return None


def pod_volumes(job: Object, volumes: tuple[Manifest, ...]) -> tuple[list[Manifest], list[Manifest]]:
    """The volumes and the mounts that every pod of the job gets."""
    names = [claim_name(job, index, volume) for index, volume in enumerate(volumes)]
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(names)]
    mounts = [
        {"name": name, "mountPath": volume.get("mountPath", "")} for name, volume in zip(names, volumes, strict=True)
    ]
    return claims, mounts


def _claim(turn: Turn, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": CLAIM, "metadata": owned(turn.job, name), "spec": spec}
