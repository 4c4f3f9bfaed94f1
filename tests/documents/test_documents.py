"""The documents say what is so: made ones have not drifted, registries are complete, links lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest
from decision_names import names_in
from document_events import EVENTS
from document_kinds import BY_KIND, CHECKED_ONLY
from document_messages import MESSAGES
from generate import ROOT, documents, unruled

from admission.domain.rules import RULES
from chassis.topics import BY_DECISION
from cluster_gateway.domain.controllers.controllers import Controllers
from job_controller.domain.registry import all_kinds
from kube import KINDS, Store
from tidegate import subjects
from tidegate.services import DECIDERS

NAMES = names_in(ROOT / "services")
WRITTEN = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    + [file for folder in ("docs", "services", "libs") for file in (ROOT / folder).glob("**/*.md")]
)
SERVICES = sorted(folder.name for folder in (ROOT / "services").iterdir() if (folder / "src").is_dir())
LIBRARIES = sorted(folder.name for folder in (ROOT / "libs").iterdir() if (folder / "src").is_dir())
PLURAL = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


@pytest.mark.parametrize("file", documents(), ids=lambda file: file.name)
def test_a_made_document_is_as_the_code_makes_it(file: Path) -> None:
    assert file.read_text() == documents()[file], f"{file.relative_to(ROOT)} has drifted; run `make docs`"


def test_every_decision_in_the_code_is_in_the_document() -> None:
    """With the service that makes it. A name that a run fills in fits one that is known, at least."""
    known = list(EVENTS.values())
    strangers = [
        f"{name.place}: {name.text or name.pattern}"
        for name in NAMES
        if not any(event.service == name.service and name.fits(event.name) for event in known)
    ]
    assert strangers == []


def test_every_decision_in_the_document_is_in_the_code() -> None:
    gone = [
        event.name
        for event in EVENTS.values()
        if not any(name.service == event.service and name.fits(event.name) for name in NAMES)
    ]
    assert gone == []


def test_those_that_decide_are_those_that_make_decisions() -> None:
    assert {*DECIDERS} <= {name.service for name in NAMES}


def test_decisions_that_other_services_hear_are_those_that_a_late_reader_can_find() -> None:
    """What is heard has a payload, and a topic by which its newest is found."""
    assert BY_DECISION.keys() == {event.name for event in EVENTS.values() if event.heard_by}
    assert all(event.payload for event in EVENTS.values() if event.heard_by)


def test_every_subject_on_the_bus_is_in_the_document() -> None:
    """All that `tidegate.subjects` names but the wildcards over others."""
    made = {name for name in vars(subjects) if not name.startswith("_")} - {"token", "REPORTS", "HEARTBEATS"}
    assert {message.source for message in MESSAGES if message.source} == made


def test_a_subject_in_the_document_is_as_the_code_makes_it() -> None:
    for message in MESSAGES:
        source = getattr(subjects, message.source, None)
        if isinstance(source, str):
            assert message.subject.removeprefix("tidegate.") == source.removeprefix("tidegate.")
        elif source is not None:
            words = re.findall(r"<(\w+)>", message.subject)
            text = re.sub(r"<\w+>", lambda found: found[0][1:-1], message.subject)
            assert text.removeprefix("tidegate.") == source(*words).removeprefix("tidegate.")


def test_kinds_that_job_controller_acts_on_are_all_in_the_document() -> None:
    acted = {kind for kind, support in BY_KIND.items() if "job_controller" in support.actors}
    beside = {
        "PersistentVolumeClaim",
        "TrainingRuntime.trainer.kubeflow.org",
        "ClusterTrainingRuntime.trainer.kubeflow.org",
    }
    assert {kind.kind for kind in all_kinds()} == acted - beside


def test_kinds_that_the_gateway_runs_controllers_for_are_all_in_the_document() -> None:
    acted = {kind for kind, support in BY_KIND.items() if "cluster_gateway" in support.actors}
    assert set(Controllers(Store())._reconcile) <= acted


def test_every_actor_in_the_document_names_the_kind_in_its_code() -> None:
    missing = [
        f"{actor}: {kind}"
        for kind, support in BY_KIND.items()
        for actor in support.actors
        if actor != "node_agent" and not _names(actor, kind)
    ]
    assert missing == []


def _names(service: str, kind: str) -> bool:
    own = [file.read_text() for file in (ROOT / "services" / service / "src").glob("**/*.py")]
    shared = [
        ROOT / "libs" / "kube" / "src" / "kube" / f"{name}.py"
        for name in ("volumes", "runtime_classes", "resource_quotas", "elastic_quotas", "scheduling_pause")
    ]
    texts = [
        *own,
        *(file.read_text() for file in shared if any(f"from kube.{file.stem} import" in text for text in own)),
    ]
    short, _, group = kind.partition(".")
    return any(f'"{kind}"' in text or (group and f'"{short}' in text and group in text) for text in texts) or (
        short in ("TrainingRuntime", "ClusterTrainingRuntime")
    )


def test_kinds_that_nobody_acts_on_are_told_apart() -> None:
    """Checked by admission, or stored as they are."""
    assert CHECKED_ONLY.keys() <= RULES.keys()
    assert not CHECKED_ONLY.keys() & BY_KIND.keys()
    assert unruled() - BY_KIND.keys() <= KINDS.keys() - CHECKED_ONLY.keys()
    assert RULES.keys() == (BY_KIND.keys() & RULES.keys()) | CHECKED_ONLY.keys()
    assert BY_KIND.keys() <= KINDS.keys()


def test_kinds_that_nobody_acts_on_are_named_by_no_service() -> None:
    """Besides admission, which checks them, and whoever makes them for others."""
    made_only = {
        *("HorizontalPodAutoscaler.autoscaling", "HTTPRoute.gateway.networking.k8s.io", "Ingress.networking.k8s.io")
    }
    named = [
        f"{file.relative_to(ROOT)}: {kind}"
        for service in {*SERVICES} - {"admission", "cli"}
        for file in (ROOT / "services" / service / "src").glob("**/*.py")
        for kind in KINDS.keys() - BY_KIND.keys() - made_only
        if "." in kind and f'"{kind}"' in file.read_text()
    ]
    assert sorted(named) == []


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_link_in_a_document_leads_to_a_file(file: Path) -> None:
    targets = [target for target in PLURAL.findall(file.read_text()) if "://" not in target]
    assert [target for target in targets if not (file.parent / target).exists()] == []


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_a_readme_of_one_screen(name: str) -> None:
    """Its question, what it consumes, emits and owns, its invariants."""
    text = (ROOT / "services" / name / "README.md").read_text()
    assert len(text.splitlines()) <= 45
    assert text.startswith(f"# {name}\n")
    for word in ("question", "consumes", "emits", "owns", "invariants"):
        assert word in text.lower(), f"{name}'s README does not say: {word}"


@pytest.mark.parametrize("name", SERVICES)
def test_the_front_page_names_every_service(name: str) -> None:
    assert f"[`{name}`](services/{name}/README.md)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_has_a_short_readme(name: str) -> None:
    text = (ROOT / "libs" / name / "README.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert len(text.splitlines()) <= 30


def test_design_records_are_numbered_and_have_their_three_parts() -> None:
    """And none is longer than a page."""
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [record.name[:4] for record in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    for record in records:
        text = record.read_text()
        assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], record.name
        assert len(text.splitlines()) <= 60, f"{record.name} is longer than a page"


def test_every_dependency_is_weighed_in_the_design_record() -> None:
    """What is declared in pyproject.toml is named in the record about dependencies."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (record,) = (ROOT / "docs" / "adr").glob("*-dependencies.md")
    text = record.read_text().lower()
    assert [name for name in declared if name.lower() not in text] == []
