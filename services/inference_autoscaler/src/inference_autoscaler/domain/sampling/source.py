"""Places that tell samples. Equal ones are asked once, whoever wants it."""

from dataclasses import dataclass

from kube import Key


@dataclass(frozen=True, slots=True)
class Access:
    """How to be let in. ``authentication`` names what KEDA keeps credentials in, ``modes`` what of them is shown.

    With ``unverified`` a server's certificate is taken as it is.
    """

    authentication: Key | None = None
    modes: tuple[str, ...] = ()
    unverified: bool = False


@dataclass(frozen=True, slots=True)
class Promql:
    """A query to the Prometheus at ``address``: its one value, or one value for each value of the label ``by``.

    ``empty_is_zero`` takes an answer without series for zero; else it says that nothing is known.
    """

    address: str
    query: str
    by: str = ""
    summed: bool = False
    """Whether several series are added up; else they are too many."""
    empty_is_zero: bool = False
    parameters: tuple[tuple[str, str], ...] = ()
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class JetStreamLag:
    """How far a consumer is behind its stream, as the monitoring port of a NATS server tells it."""

    address: str
    account: str
    stream: str
    consumer: str
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A number at ``location`` (names and positions with dots between them) of the JSON that ``url`` gives."""

    url: str
    location: str
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class Exposition:
    """What each pod of ``target`` tells of ``metric`` in Prometheus' text format, of series with these labels."""

    target: Key
    metric: str
    labels: tuple[tuple[str, str], ...] = ()


Source = Promql | JetStreamLag | JsonValue | Exposition
