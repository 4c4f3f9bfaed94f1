"""Settings of a service: one frozen class, read once from flags and environment; unknown keys are errors.

A field ``nats_url`` is given as ``--nats-url URL`` or as ``TIDEGATE_NATS_URL``; a flag wins over the environment.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

PREFIX = "TIDEGATE_"
T = TypeVar("T")


class SettingsError(ValueError):
    """A setting that is unknown, missing or of the wrong form; the text names it and the way out."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What every service is told. ``data_dir`` is the only folder that it writes to.

    ``trace`` is where spans go: ``off``, or ``file`` for traces/<service>.jsonl in the data folder. ``clock_base_ms`` lets
    the clocks of all services of a machine agree (`chassis.clock.SteadyClock`); 0 for the machine's time.

    ``nats_credentials`` is a folder with the files ``username`` and ``password``, or ``user.creds``. With ``nats_authority``, a
    file of certificates (PEM), the bus is spoken to over TLS alone, and one of them has to vouch for it. ``nats_replicas`` is on how
    many servers of the bus each stream is kept. ``listen_host`` is where health checks, the API and metrics are served.
    """

    nats_url: str = "nats://127.0.0.1:4222"
    nats_token: str = ""
    nats_credentials: Path | None = None
    nats_authority: Path | None = None
    nats_replicas: int = 1
    listen_host: str = "127.0.0.1"
    data_dir: Path = Path(".tidegate")
    health_port: int = 0
    metrics_port: int = 0
    holder: str = "only"
    log_level: str = "INFO"
    trace: str = "off"
    clock_base_ms: int = 0


def read(cls: type[T], arguments: Sequence[str], environment: Mapping[str, str], known: Sequence[str] = ()) -> T:
    """Settings of the class ``cls``. ``known`` are environment names with the prefix that other programs read.

    Raises SettingsError.
    """
    assert dataclasses.is_dataclass(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    given: dict[str, Any] = {}
    types_ = typing.get_type_hints(cls)
    for name, text in _from_environment(environment, fields.keys(), known) + _from_flags(arguments, fields.keys()):
        given[name] = _parse(name, text, types_[name])
    missing = [
        name
        for name, field in fields.items()
        if name not in given and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise SettingsError(f"{', '.join(missing)}: not given; pass --{missing[0].replace('_', '-')} VALUE")
    return cls(**given)


def shown(settings: object) -> dict[str, str]:
    """The settings by name as they can be shown to anybody: of a token only whether there is one."""
    assert dataclasses.is_dataclass(settings) and not isinstance(settings, type)
    values = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    return {name: ("given" if value else "") if "token" in name else str(value) for name, value in values.items()}


def _from_environment(
    environment: Mapping[str, str], names: typing.KeysView[str], known: Sequence[str]
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in environment.items():
        if not key.startswith(PREFIX) or key in known:
            continue
        name = key.removeprefix(PREFIX).lower()
        if name not in names:
            raise SettingsError(f"{key}: no such setting; there are {', '.join(sorted(names))}")
        found.append((name, value))
    return found


def _from_flags(arguments: Sequence[str], names: typing.KeysView[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    words = list(arguments)
    while words:
        flag = words.pop(0)
        flag, equals, value = flag.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in names:
            flags = ", ".join(f"--{known.replace('_', '-')}" for known in sorted(names))
            raise SettingsError(f"{flag}: no such setting; there are {flags}")
        if not equals and not words:
            raise SettingsError(f"{flag}: its value is missing")
        found.append((name, value if equals else words.pop(0)))
    return found


def _parse(name: str, text: str, wanted: Any) -> Any:
    options = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    kind = next(option for option in options if option is not type(None))
    try:
        if kind is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        if typing.get_origin(kind) is tuple:
            return tuple(part for part in text.split(",") if part)
        return kind(text)
    except (ValueError, KeyError):
        raise SettingsError(f"{name}: {text!r} is no {getattr(kind, '__name__', kind)}") from None
