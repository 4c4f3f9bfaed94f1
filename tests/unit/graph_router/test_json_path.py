"""Paths into JSON as GJSON reads them: what they lead to, and what is refused."""

from typing import Any

import pytest

from kube.json_path import MISSING, PathError, exists, find, parse

DOCUMENT: dict[str, Any] = {
    "name": {"first": "Tom", "last": "Anderson"},
    "age": 37,
    "children": ["Sara", "Alex", "Jack"],
    "fav.movie": "Deer Hunter",
    "a*b": 1,
    "none": None,
    "friends": [
        {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb"], "ok": True},
        {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
        {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"], "ok": False},
    ],
    "predictions": [1],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("name.last", "Anderson"),
        ("name.age", MISSING),
        ("none", None),
        ("children.1", "Alex"),
        ("children.7", MISSING),
        ("child*.2", "Jack"),
        ("c?ildren.0", "Sara"),
        ("fav\\.movie", "Deer Hunter"),
        ("a\\*b", 1),
        ("children.#", 3),
        ("friends.#.first", ["Dale", "Roger", "Jane"]),
        ("friends.#.nets.#", [2, 2, 2]),
        ("friends.#.nope", []),
        ("name.#", MISSING),
        ('friends.#(last=="Murphy").first', "Dale"),
        ('friends.#(last=="Murphy")#.first', ["Dale", "Jane"]),
        ("friends.#(age>45)#.last", ["Craig", "Murphy"]),
        ("friends.#(age>=68).first", "Roger"),
        ('friends.#(first%"D*").last', "Murphy"),
        ('friends.#(first!%"D*").last', "Craig"),
        ('friends.#(nets.#(=="fb"))#.first', ["Dale", "Roger"]),
        ("friends.#(ok==true).first", "Dale"),
        ("friends.#(ok!=true).first", "Jane"),
        ("friends.#(ok).first", "Dale"),
        ('friends.#(last=="No")', MISSING),
        ('friends.#(last=="No")#', []),
        ('children.#(=="Jack")', "Jack"),
        ("@this.age", 37),
        ("[@this].#(predictions.0==1)", DOCUMENT),
        ("[@this].#(predictions.0==2)", MISSING),
        ("[age,nope,name.first]", [37, "Tom"]),
        ('friends.#(last=="Murphy")#|0.first', "Dale"),
        ('friends.#(last=="x.y").first', MISSING),
    ],
)
def test_a_path_leads_to_what_gjson_says(path: str, found: Any) -> None:
    parsed = parse(path)
    assert find(parsed, DOCUMENT) == found if found is not MISSING else find(parsed, DOCUMENT) is MISSING
    assert exists(parsed, DOCUMENT) == (found is not MISSING)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a..b",
        "a.#(",
        "a.#(b==)",
        'a.#(b=="x)',
        "@reverse",
        "a.@flatten",
        "!x",
        "{a,b}",
        "a.#()",
        "#x",
        "a.#(b==~true)",
    ],
)
def test_what_is_not_understood_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        parse(path)
