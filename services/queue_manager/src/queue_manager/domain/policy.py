"""What an operator may choose about queues."""

from dataclasses import dataclass, field

from queue_manager.domain.quotas.claims import CLAIMS
from queue_manager.domain.quotas.kueue_policy import KueuePolicy
from resources import QuantityError, parse_milli

QUEUEING = {"elastic-quota": "proportion", "cohort": "proportion"} | {name: name for name in CLAIMS}
"""The rule of shares that Volcano's queues follow, by the word for the queueing as a whole.

Elastic quotas and ClusterQueues are at work wherever there are such objects; with the first two words Volcano's own queues,
which then have little to do, share as they do by default.
"""


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """The choices. ``queueing`` names the rule of shares; ``overcommit`` is the factor of the enqueue gate, such as
    ``"1.2"``, None for no gate; ``strict_fifo`` lets nobody pass the head of any queue; ``fair`` orders the work of
    ClusterQueues by the shares of their queues and cohorts; ``fifo`` lets groups come to the gate by age, whatever their
    priority (ClusterQueues have their own ``queueingStrategy``); ``kueue`` is what Kueue's Configuration chooses.

    Raises ValueError for a rule or a factor that there is not.
    """

    overcommit: str | None = None
    queueing: str = "proportion"
    strict_fifo: bool = False
    fair: bool = False
    fifo: bool = False
    kueue: KueuePolicy = field(default_factory=KueuePolicy)

    def __post_init__(self) -> None:
        if self.queueing not in QUEUEING:
            raise ValueError(f"queueing {self.queueing!r} is none of {', '.join(sorted(QUEUEING))}")
        if self.overcommit is not None and self.factor_milli < 1000:
            raise ValueError(f"overcommit {self.overcommit!r} is below 1, which would leave room idle for ever")

    @property
    def claim(self) -> str:
        """The rule by which Volcano's queues share."""
        return QUEUEING[self.queueing]

    @property
    def factor_milli(self) -> int:
        """The overcommit factor in thousandths; 0 when there is no gate."""
        if self.overcommit is None:
            return 0
        try:
            return parse_milli(self.overcommit)
        except QuantityError as error:
            raise ValueError(f"overcommit: {error}") from None
