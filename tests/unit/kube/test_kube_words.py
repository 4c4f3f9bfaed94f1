"""Words for one and for several."""

from kube.words import counted, some, verb


def test_the_noun_and_the_verb_follow_the_number() -> None:
    assert [f"{counted(number, 'pod')} {verb(number)}" for number in (0, 1, 2)] == [
        "0 pods are",
        "1 pod is",
        "2 pods are",
    ]
    assert counted(2, "queue or cohort", "queues and cohorts") == "2 queues and cohorts"
    assert verb(1, "has", "have") == "has"


def test_of_many_the_first_are_named_and_the_others_counted() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some(list("abcdefg")) == "a, b, c, d, e and 2 more"
