"""What a service logs in to the bus with."""

from pathlib import Path

import pytest

from bus.login import NoCredentials, login


def test_a_token_is_what_there_is_without_a_folder() -> None:
    assert login("secret", None) == {"token": "secret"}


def test_user_and_password_are_read_again_at_every_connect(tmp_path: Path) -> None:
    (tmp_path / "username").write_text("admission\n")
    (tmp_path / "password").write_text("old")
    options = login(None, tmp_path)
    (tmp_path / "password").write_text("new\n")
    assert (options["user"](), options["password"]()) == ("admission", "new")


def test_a_signed_file_goes_before_user_and_password(tmp_path: Path) -> None:
    for name in ("username", "password", "user.creds"):
        (tmp_path / name).write_text("x")
    assert login(None, tmp_path).keys() == {"user_jwt_cb", "signature_cb"}


def test_a_signed_file_that_holds_no_user_is_named(tmp_path: Path) -> None:
    (tmp_path / "user.creds").write_text("x")
    with pytest.raises(ValueError, match=r"user\.creds has no part NATS USER JWT"):
        login(None, tmp_path)["user_jwt_cb"]()


def test_a_folder_without_a_login_is_an_error_that_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "username").write_text("admission")
    with pytest.raises(NoCredentials, match=r"holds neither user.creds nor password"):
        login(None, tmp_path)
