"""Reading what sources say: numbers in thousandths, rounded up as Kubernetes' quantities are, or why there is none."""

import json
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from kube import Manifest
from resources.quantity import LARGEST, QuantityError, parse_milli

Values = dict[str, int]
"""In thousandths, by the name of the pod; by "" where there is one for all."""

_DIGITS = 60
"""Of a number that a source may write: what is longer is no measurement."""


class SourceFailed(Exception):
    """A source says nothing that could be used: why, in words without any credentials."""


def milli(text: object) -> int:
    """A number in thousandths. Raises SourceFailed for what is none, which NaN and infinities are as well."""
    written = str(text)
    if isinstance(text, bool) or not isinstance(text, str | int | float) or len(written) > _DIGITS:
        raise SourceFailed(f"it tells {written[:_DIGITS]!r}, which is no number")
    try:
        number = Decimal(written)
    except InvalidOperation:
        raise SourceFailed(f"it tells {written!r}, which is no number") from None
    if not number.is_finite():
        raise SourceFailed(f"it tells {written}, which is no number")
    if number.adjusted() > 16:
        return LARGEST if number > 0 else -LARGEST
    return int((number * 1000).to_integral_value(ROUND_CEILING))


def parsed(content: bytes) -> Manifest:
    """JSON that is an object. Raises SourceFailed."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise SourceFailed(f"it answers no JSON, but {_start(content)}") from None
    if not isinstance(found, dict):
        raise SourceFailed(f"it answers no object, but {_start(content)}")
    return found


def vector(content: bytes, by: str, *, summed: bool, empty_is_zero: bool) -> Values:
    """What a Prometheus answers to an instant query: a value for each value of the label ``by``, or one. Raises SourceFailed."""
    told = parsed(content)
    if told.get("status") != "success":
        raise SourceFailed(f"it refuses the query: {str(told.get('error'))[:300]}")
    try:
        data = told["data"]
        if data["resultType"] == "scalar":
            return {"": milli(data["result"][1])}
        series = (
            [(dict(one["metric"]), one["value"][1]) for one in data["result"]]
            if data["resultType"] == "vector"
            else None
        )
    except (KeyError, TypeError, ValueError, IndexError):
        raise SourceFailed(f"it answers what is no result of a query: {_start(content)}") from None
    if series is None:
        raise SourceFailed(f"the query gives a {data['resultType']}, and has to give one value for each series")
    if by:
        return _by_label(series, by)
    if not series:
        if empty_is_zero:
            return {"": 0}
        raise SourceFailed("the query finds no series")
    if len(series) > 1 and not summed:
        raise SourceFailed(f"the query finds {len(series)} series, and has to find one; add them up")
    return {"": sum(milli(value) for _, value in series)}


def _by_label(series: list[tuple[dict[str, str], object]], by: str) -> Values:
    """Of each object the sum of its series. One that tells no number is left out: the others' are known."""
    found: Values = {}
    broken: set[str] = set()
    for labels, value in series:
        if name := str(labels.get(by) or ""):
            try:
                found[name] = found.get(name, 0) + milli(value)
            except SourceFailed:
                broken.add(name)
    return {name: value for name, value in found.items() if name not in broken}


def lag(content: bytes, account: str, stream: str, consumer: str) -> Values:
    """What a consumer has still to do: messages that wait for it, and those that it has not acknowledged. Raises SourceFailed."""
    told = parsed(content)
    try:
        accounts = [one for one in told.get("account_details") or () if account in (one.get("name"), one.get("id"))]
        streams = [one for found in accounts for one in found.get("stream_detail") or () if one["name"] == stream]
        if not streams:
            raise SourceFailed(f"the account {account} has no stream {stream} there")
        consumers = [one for one in streams[0].get("consumer_detail") or () if one["name"] == consumer]
        if not consumers:
            raise SourceFailed(f"the stream {stream} has no consumer {consumer} there{_elsewhere(told, streams[0])}")
        return {"": 1000 * (int(consumers[0]["num_pending"]) + int(consumers[0]["num_ack_pending"]))}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SourceFailed(f"it answers no account of JetStream: {_start(content)}") from None


def _elsewhere(told: Mapping[str, object], stream: Mapping[str, Manifest]) -> str:
    leader = (stream.get("cluster") or {}).get("leader")
    return f"; its leader is the server {leader}" if leader else f" (server {told.get('server_id')})"


def located(content: bytes, location: str) -> Values:
    """The number, or the quantity, at ``location``: ``components.0.tasks``. Raises SourceFailed."""
    part: object = parsed(content)
    for name in location.split("."):
        if isinstance(part, dict) and name in part:
            part = part[name]
        elif isinstance(part, list) and name.isdigit() and int(name) < len(part):
            part = part[int(name)]
        else:
            raise SourceFailed(f"there is no {name} of {location} in what it answers")
    if isinstance(part, str):
        try:
            return {"": parse_milli(part)}
        except QuantityError:
            pass
    return {"": milli(part)}


def _start(content: bytes) -> str:
    return repr(content[:80].decode(errors="replace"))
