"""Which query tells a metric of a name: the rules of Prometheus' adapter for Kubernetes, read the other way round.

That adapter lists all series again and again and makes names of them. Here a name is given, and the series that it is made of
is looked for: so nothing is listed, and no query is asked that nobody wants.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kube import Manifest

_SERIES_NAME = re.compile(r"^\s*([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{|$)")
_SERIES_PATTERN = re.compile(r"__name__\s*=~\s*\"((?:[^\"\\]|\\.)*)\"")
_GROUP = re.compile(r"\(\.[*+]\??\)")
_PLACE = re.compile(r"\$\{?([01])\}?")
_TEMPLATE = re.compile(r"<<\s*\.?(\w+(?:\.\w+)*)[^>]*>>")
_KNOWN_PARTS = frozenset(("Series", "LabelMatchers", "GroupBy"))
DEFAULT_QUERY = "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"


class RuleError(ValueError):
    """A rule that cannot be used; the text says which part of it, and why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``series`` says of a name whether it is of a series that the rule means.

    ``made_of`` is what a metric's name has to be like, ``back`` how the series is called then. ``labels`` are those by which
    series name objects, by resource; ``template`` is for resources that are not among them.
    """

    series: re.Pattern[str]
    made_of: re.Pattern[str]
    back: str
    query: str
    labels: Mapping[str, str]
    template: str = ""
    namespaced: bool = True
    filters: tuple[tuple[bool, re.Pattern[str]], ...] = ()

    def series_of(self, metric: str) -> str | None:
        """The name of the series that ``metric`` is made of; None where this rule does not make it."""
        found = self.made_of.fullmatch(metric)
        if found is None:
            return None
        name = self.back.replace("\0", found[1]) if "\0" in self.back else self.back
        meant = self.series.fullmatch(name) and all(bool(one.search(name)) is wanted for wanted, one in self.filters)
        return name if meant else None

    def label_of(self, resource: str) -> str | None:
        """The label by which series say of which object of ``resource`` they are; None where the rule knows none."""
        if resource in self.labels:
            return self.labels[resource]
        return re.sub(r"<<\s*\.Resource\s*>>", resource, self.template) if self.template else None

    def ask(self, series: str, matchers: Mapping[str, str], group: str) -> str:
        """The query for ``series`` with these labels, told apart by the label ``group``; "" for all of them together."""
        listed = ",".join(f'{name}="{_escaped(value)}"' for name, value in matchers.items())
        parts = {"Series": series, "LabelMatchers": listed, "GroupBy": group}
        query = _TEMPLATE.sub(lambda found: parts[found[1]], self.query)
        return re.sub(r"\s*by\s*\(\s*\)", "", query)


def read_rules(given: object) -> tuple[Rule, ...]:
    """The rules of a list in the adapter's words. Raises RuleError."""
    if not isinstance(given, list):
        raise RuleError("rules: is no list")
    found = []
    for index, one in enumerate(given):
        try:
            found.append(_rule(one))
        except (RuleError, KeyError, TypeError, AttributeError, re.error) as error:
            words = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise RuleError(f"rules[{index}]: {words}") from None
    return tuple(found)


def _rule(given: Manifest) -> Rule:
    query = str(given.get("metricsQuery") or DEFAULT_QUERY)
    if unknown := {found[1] for found in _TEMPLATE.finditer(query)} - _KNOWN_PARTS:
        raise RuleError(
            f"metricsQuery: {', '.join(sorted(unknown))}: only {', '.join(sorted(_KNOWN_PARTS))} are filled in"
        )
    series = _series(str(given["seriesQuery"]))
    resources = given.get("resources") or {}
    overrides: Manifest = resources.get("overrides") or {}
    labels = {str(one["resource"]).removesuffix("s"): str(label) for label, one in overrides.items()}
    made_of, back = _name(given.get("name") or {}, series)
    filters = tuple(
        (name == "is", re.compile(str(one[name])))
        for one in given.get("seriesFilters") or ()
        for name in ("is", "isNot")
        if one.get(name)
    )
    namespaced = resources.get("namespaced") is not False
    return Rule(series, made_of, back, query, labels, str(resources.get("template") or ""), namespaced, filters)


def _series(query: str) -> re.Pattern[str]:
    """What the names are like of the series that a ``seriesQuery`` finds."""
    if found := _SERIES_NAME.match(query):
        return re.compile(re.escape(found[1]))
    if found := _SERIES_PATTERN.search(query):
        return re.compile(found[1])
    raise RuleError(f"seriesQuery: {query!r} names no series, neither as itself nor by __name__=~")


def _name(given: Manifest, series: re.Pattern[str]) -> tuple[re.Pattern[str], str]:
    """What a metric's name has to be like, and the series' name then, its middle marked by a NUL."""
    matches, wanted = str(given.get("matches") or ".*"), str(given.get("as") or "")
    bare = matches.removeprefix("^").removesuffix("$")
    groups = _GROUP.findall(bare)
    if not wanted:
        wanted = "${1}" if groups else "${0}"
    places = _PLACE.findall(wanted)
    if not places:
        literal = re.sub(r"\\(.)", r"\1", series.pattern)
        if re.escape(literal) != series.pattern:
            raise RuleError("name.as: is the same for every series; seriesQuery has to name one then")
        return re.compile(f"({re.escape(wanted)})"), literal
    if len(places) > 1 or (places == ["1"] and len(groups) != 1):
        raise RuleError(
            f"name: {matches!r} as {wanted!r} cannot be turned round; take one group (.*), and name it once"
        )
    prefix, suffix = (re.escape(part) for part in _split(_PLACE, wanted))
    if places == ["0"]:
        return re.compile(f"{prefix}(.*){suffix}"), "\0"
    before, after = (re.sub(r"\\(.)", r"\1", part) for part in _split(_GROUP, bare))
    return re.compile(f"{prefix}(.*){suffix}"), f"{before}\0{after}"


def _split(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    found = pattern.search(text)
    assert found is not None, "it was found before"
    return text[: found.start()], text[found.end() :]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
