"""What an operator may choose about queues."""

from dataclasses import dataclass

from queue_manager.domain.claims import CLAIMS
from resources import QuantityError, parse_milli


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """The choices. ``queueing`` names the rule of shares; ``overcommit`` is the factor of the enqueue gate, such as
    ``"1.2"``, None for no gate; ``strict_fifo`` lets nobody pass the head of any queue.

    Raises ValueError for a rule or a factor that there is not.
    """

    overcommit: str | None = None
    queueing: str = "proportion"
    strict_fifo: bool = False

    def __post_init__(self) -> None:
        if self.queueing not in CLAIMS:
            raise ValueError(f"queueing {self.queueing!r} is none of {', '.join(sorted(CLAIMS))}")
        if self.overcommit is not None and self.factor_milli < 1000:
            raise ValueError(f"overcommit {self.overcommit!r} is below 1, which would leave room idle for ever")

    @property
    def factor_milli(self) -> int:
        """The overcommit factor in thousandths; 0 when there is no gate."""
        if self.overcommit is None:
            return 0
        try:
            return parse_milli(self.overcommit)
        except QuantityError as error:
            raise ValueError(f"overcommit: {error}") from None
