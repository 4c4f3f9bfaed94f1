"""Small things that several services write: the reference of a controller, and lists of CPUs."""

from hypothesis import given
from hypothesis import strategies as st

from kube import from_manifest
from kube.cpu_lists import format_cpus, parse_cpus
from kube.owners import owner_reference


def test_a_reference_names_the_controller_with_its_group() -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j", "uid": "u-1"}}
    assert owner_reference(from_manifest(job)) == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_is_read_as_it_was_written(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(cpus)) == tuple(sorted(cpus))
