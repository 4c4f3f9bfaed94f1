"""Settings of single services, as they are given to ``tidegate up``."""

import dataclasses
import importlib
from typing import Any, NamedTuple

import click

from tidegate.services import SERVICES


class ServiceSetting(NamedTuple):
    """A setting of one service, as somebody gave it."""

    service: str
    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.service}.{self.name}={self.value}"


class ServiceSettingOption(click.ParamType[ServiceSetting]):
    """``SERVICE.SETTING=VALUE``. Whether the value will do is the service's to say."""

    name = "SERVICE.SETTING=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ServiceSetting:
        path, equals, text = str(value).partition("=")
        service, dot, setting = path.partition(".")
        if not (equals and dot):
            self.fail(f"{value!r} is not {self.name}", param, ctx)
        if service not in SERVICES:
            self.fail(f"there is no service {service!r}; one of {', '.join(sorted(SERVICES))}", param, ctx)
        known = _settings_of(service)
        if setting not in known:
            self.fail(f"{service} has no setting {setting!r}; one of {', '.join(known)}", param, ctx)
        return ServiceSetting(service, setting, text)


def _settings_of(service: str) -> list[str]:
    """The names of the settings that ``service`` reads at its start."""
    settings: Any = importlib.import_module(f"{service}.main").Settings
    return sorted(field.name for field in dataclasses.fields(settings))
