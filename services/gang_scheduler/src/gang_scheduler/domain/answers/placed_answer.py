"""Why a pod is where it is: the parts of the score of its node, and of the nodes that came next."""

import numpy as np

from gang_scheduler.domain.answers.knowledge import Knowledge
from gang_scheduler.domain.answers.nearest_miss import place_of
from gang_scheduler.domain.columns.vectors import ALL, Ints
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.reservation_use import used_by
from gang_scheduler.domain.score.scoring import FULL, POINT, Placement, RoomScore, static_score
from kube import Manifest

RUNNERS_UP = 3


def placed(k: Knowledge, record: PodRecord) -> Manifest:
    """Where a pod is and why there, as the nodes are now but for the pod itself."""
    answer: Manifest = {"verdict": "Placed", "rule": "", "nodes": [record.node]}
    answer["message"] = f"pod {record.key.name} is on {record.node}" + (" (being bound)" if record.assumed else "")
    if record.reservation:
        answer["reservation"] = record.reservation
        answer["message"] += f", in the room of reservation {record.reservation}"
    elif told := used_by(k.cluster.room, record):
        answer["message"] += f"; {told}"
    if record.slot < 0:
        return answer
    why = _why(k, record)
    answer["why"] = why
    manner = "packed" if why["placement"] == Placement.BINPACK else "spread"
    runners = ", ".join(f"{item['node']} ({item['score']})" for item in why["runnersUp"])
    answer["message"] += f": its score is {why['score']}" + (
        f", next would be {runners}" if runners else ", no other fits"
    )
    answer["message"] += f"; nodes are {manner}, as {why['placementBy']} says"
    return answer


def _why(k: Knowledge, record: PodRecord) -> Manifest:
    room, table, slot, queue = k.cluster.room, k.cluster.room.table, record.slot, record.charged
    rows = table.rows_for(record.shape)
    filled = {
        name: f"{int(table.used[row, slot])}/{int(table.allocatable[row, slot])}"
        for name, row in zip(record.shape.requests, rows, strict=True)
    }
    with k.trial():
        room.vacate([record])
        try:
            parts = _parts(k, record)
            fits = np.array(room.view(record).copies > 0)
            for _, mask in room.coupling_masks(record):
                fits &= mask
        finally:
            room.occupy([record], slot, queue)
    choice = room.choices.of(record)
    total: Ints = np.sum(list(parts.values()), axis=0)
    order = np.lexsort((table.rank(), -total))
    others = [int(other) for other in order if fits[other] and other != slot][:RUNNERS_UP]
    return {
        "placement": str(choice.placement),
        "placementBy": choice.source,
        "usedOfAllocatable": filled,
        "place": place_of(room, slot),
        **_scored(table.names[slot], parts, slot),
        "fitting": int(np.count_nonzero(fits)),
        "runnersUp": [_scored(table.names[other], parts, other) for other in others],
    }


def _parts(k: Knowledge, record: PodRecord) -> dict[str, Ints]:
    """By part the score of every node, in millionths of a point."""
    room, table, shape = k.cluster.room, k.cluster.room.table, record.shape
    rows = table.rows_for(shape)
    scored = RoomScore.of(shape, room.placement_of(record), table).of_nodes(table.allocatable[rows], table.used[rows])
    zero = np.zeros(table.size, np.int64)
    parts = {"room": scored, "affinityTaintsDevices": static_score(shape, table), "podsAround": zero}
    parts["podsAround"] = zero + room.coupling_bonus(record)
    if table.load.ranks(shape):
        parts["load"] = table.load.scores(shape, ALL, FULL)
    return parts


def _scored(node: str, parts: dict[str, Ints], slot: int) -> Manifest:
    """A node with its score in points and its parts that are not zero."""
    points = {name: round(int(scores[slot]) / POINT, 2) for name, scores in parts.items()}
    total = round(sum(int(scores[slot]) for scores in parts.values()) / POINT, 2)
    return {"node": node, "score": total, "parts": {name: value for name, value in points.items() if value}}
