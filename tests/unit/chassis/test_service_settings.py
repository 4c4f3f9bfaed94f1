"""Settings: read once, from flags and environment; what is unknown is an error."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from chassis.settings import ServiceSettings, SettingsError, read, shown


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    nodes: int = 0
    share: float = 0.5
    strict: bool = False
    names: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Demanding:
    address: str
    port: int


def test_defaults_hold_where_nothing_is_given() -> None:
    assert read(Settings, [], {}) == Settings()


def test_a_flag_wins_over_the_environment_and_the_last_flag_over_the_first() -> None:
    environment = {"TIDEGATE_NODES": "1", "TIDEGATE_NATS_URL": "nats://a:1", "PATH": "/bin"}
    settings = read(Settings, ["--nodes", "2", "--nodes=3"], environment)
    assert (settings.nodes, settings.nats_url) == (3, "nats://a:1")


def test_values_have_the_type_of_their_field() -> None:
    flags = ["--share", "0.25", "--strict", "Yes", "--names", "a,b,", "--limit", "7", "--data-dir", "/tmp/x"]
    settings = read(Settings, flags, {})
    assert (settings.share, settings.strict, settings.names, settings.limit) == (0.25, True, ("a", "b"), 7)
    assert settings.data_dir == Path("/tmp/x")


def test_a_value_may_hold_an_equals_sign() -> None:
    assert read(Settings, ["--nats-token=a=b"], {}).nats_token == "a=b"


@pytest.mark.parametrize(
    ("flags", "environment", "text"),
    [
        (["--unknown", "1"], {}, "--unknown: no such setting"),
        ([], {"TIDEGATE_UNKNOWN": "1"}, "TIDEGATE_UNKNOWN: no such setting"),
        (["nodes", "1"], {}, "nodes: no such setting"),
        (["-nodes", "1"], {}, "no such setting"),
        (["--nodes"], {}, "--nodes: its value is missing"),
        (["--nodes", "many"], {}, "nodes: 'many' is no int"),
        (["--strict", "perhaps"], {}, "strict: 'perhaps' is no bool"),
    ],
)
def test_what_is_wrong_is_named(flags: list[str], environment: dict[str, str], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        read(Settings, flags, environment)


def test_what_has_no_default_must_be_given() -> None:
    with pytest.raises(SettingsError, match="address, port: not given"):
        read(Demanding, [], {})
    assert read(Demanding, ["--address", "a"], {"TIDEGATE_PORT": "1"}) == Demanding("a", 1)


def test_names_that_other_programs_read_are_passed_over() -> None:
    assert read(Settings, [], {"TIDEGATE_SERVER": "x"}, known=["TIDEGATE_SERVER"]) == Settings()


def test_settings_are_shown_without_their_secrets() -> None:
    told = shown(Settings(nats_token="s3cret", nodes=4))
    assert (told["nats_token"], told["nodes"]) == ("given", "4")
