"""Whether a revision does worse than the one before, by what both answered.

Two things have to hold at once: its share of errors (or of slow answers) is higher by at least what the plan says matters, and
Fisher's exact test says that this is no chance. Each look spends a part of the risk: look number k may be wrong with a chance
of risk / (k (k + 1)), half of it for the errors, half for the latency, shared equally among the bounds of the histogram. The
parts of all looks together are the risk, however many there are.
"""

from dataclasses import dataclass

from inference_autoscaler.domain.rollout.exact_test import TRILLION, Share, chance
from inference_autoscaler.domain.rollout.plan import Plan
from inference_autoscaler.domain.rollout.tally import Counts

_MILLION = 1_000_000
ERRORS_HIGHER, LATENCY_HIGHER = "ErrorRateHigher", "LatencyHigher"


@dataclass(frozen=True, slots=True)
class Finding:
    """That it does worse: the reason as one word, and the figures."""

    reason: str
    words: str


def worse(newer: Counts, older: Counts, plan: Plan, look: int) -> Finding | None:
    """What speaks against the newer one at the ``look``-th look (from 1); None where nothing does."""
    totals = newer.get("requests", 0), older.get("requests", 0)
    if min(totals) == 0:
        return None
    allowed = plan.risk // (2 * look * (look + 1))
    errors = [Share(min(one.get("errors", 0), total), total) for one, total in zip((newer, older), totals, strict=True)]
    if (found := _against(errors[0], errors[1], plan.errors, allowed)) is not None:
        return Finding(ERRORS_HIGHER, f"errors: {found}")
    bounds = sorted((name for name in newer.keys() & older.keys() if name.isdigit()), key=int)
    for bound in bounds:
        slow = [Share(max(0, total - one[bound]), total) for one, total in zip((newer, older), totals, strict=True)]
        if (found := _against(slow[0], slow[1], plan.slower, allowed // len(bounds))) is not None:
            return Finding(LATENCY_HIGHER, f"slower than {bound} ms: {found}")
    return None


def _against(newer: Share, older: Share, margin: int, allowed: int) -> str | None:
    """The figures, where the share of the newer is higher by the margin (millionths), and by more than chance."""
    ahead = newer.hits * older.total - older.hits * newer.total
    if ahead <= 0 or ahead * _MILLION < margin * newer.total * older.total:
        return None
    found = chance(newer, older)
    if found > allowed:
        return None
    return f"{shown(newer)} against {shown(older)}; by chance in 1 of {TRILLION // found}, allowed 1 of {TRILLION // allowed}"


def shown(share: Share) -> str:
    """A share with its figures."""
    hundredths = share.hits * 10_000 // share.total if share.total else 0
    return f"{hundredths // 100}.{hundredths % 100:02d} % ({share.hits} of {share.total})"
