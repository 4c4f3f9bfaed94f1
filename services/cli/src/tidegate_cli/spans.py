"""Lengths of time on the command line."""

from typing import Any

import click

from kube import parse_duration


class Seconds(click.ParamType[float]):
    """``30s``, ``5m``, ``1h30m``, or a plain number of seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return float(value) if value.replace(".", "", 1).isdigit() else parse_duration(value) / 1000
        except ValueError:
            self.fail(f"{value!r} is no length of time; write it as 30s, 5m or 1h30m", param, ctx)


SECONDS = Seconds()
