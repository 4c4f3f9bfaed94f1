"""Names as tokens of subjects."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tidegate import subjects

names = st.text(max_size=12)


@given(names, names)
def test_different_names_have_different_tokens(left: str, right: str) -> None:
    assert (subjects.token(left) == subjects.token(right)) == (left == right)


@given(names)
def test_a_token_holds_nothing_that_a_subject_cannot(name: str) -> None:
    token = subjects.token(name)
    assert re.fullmatch(r"[A-Za-z0-9_=-]*", token)
    assert re.sub(r"((?:=[0-9A-F]{2})+)", lambda m: bytes.fromhex(m[1].replace("=", "")).decode(), token) == name


def test_ordinary_names_stay_readable_and_dots_do_not_split_the_subject() -> None:
    assert subjects.assignment("node-1_a") == "tidegate.assignment.node-1_a"
    assert subjects.report("n1.example.com") == "tidegate.report.n1=2Eexample=2Ecom"
    assert len(subjects.heartbeat("a.b.c").split(".")) == len(subjects.HEARTBEATS.split("."))
