"""What people who come from Kubernetes or Volcano are told when they apply something that is not what it seems."""

from typing import Any

import pytest

from admission.domain.admit import admit
from admission.domain.errors import Rejected
from kube import Manifest, Store, from_manifest


def store(*annotations: str) -> Store:
    found = Store()
    for index, name in enumerate(annotations):
        metadata = {"name": f"n{index}", "annotations": {name: "{}"}}
        found.put(from_manifest({"apiVersion": "v1", "kind": "Node", "metadata": metadata}))
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    found.put(from_manifest({**queue, "spec": {"weight": 1}, "status": {"state": "Open"}}))
    return found


def container(**more: Any) -> Manifest:
    return {"name": "c", "image": "nginx", **more}


def deployment(*containers: Manifest) -> Manifest:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers)}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def job(minimum: int | None, *tasks: tuple[int, int | None], **more: Any) -> Manifest:
    template = {"spec": {"containers": [container(command=["true"])]}}
    made: list[Manifest] = [
        {"name": f"t{n}", "replicas": replicas, "template": template}
        | ({} if least is None else {"minAvailable": least})
        for n, (replicas, least) in enumerate(tasks)
    ]
    spec = {"tasks": made, **more} | ({} if minimum is None else {"minAvailable": minimum})
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def test_where_nodes_run_no_images_a_container_without_a_command_is_pointed_out() -> None:
    nodes = store("tidegate.dev/simulated", "tidegate.dev/isolation")
    (warning,) = admit(deployment(container(command=["true"]), container(name="d")), None, nodes).warnings
    assert warning.startswith("spec.template.spec.containers[1].command is not set: node n1 runs processes")
    assert "ImageNotRunnable" in warning


@pytest.mark.parametrize(
    ("told", "images", "warned"),
    [
        ('["*/tritonserver"]', ["nvcr.io/nvidia/tritonserver:1"], None),
        ('["*/tritonserver"]', ["nvcr.io/nvidia/tritonserver:1", "nginx"], 1),
        ('["nginx:1"]', ["nginx"], 0),
        ("[broken", ["nginx"], 0),
        ("3", ["nginx"], 0),
    ],
)
def test_an_image_that_a_program_of_the_node_stands_in_for_is_not_pointed_out(
    told: str, images: list[str], warned: int | None
) -> None:
    nodes = store()
    metadata = {"name": "n", "annotations": {"tidegate.dev/isolation": "{}", "tidegate.dev/images": told}}
    nodes.put(from_manifest({"apiVersion": "v1", "kind": "Node", "metadata": metadata}))
    made = deployment(*(container(name=f"c{number}", image=image) for number, image in enumerate(images)))
    said = admit(made, None, nodes).warnings
    assert [warning.partition(".command")[0] for warning in said] == (
        [] if warned is None else [f"spec.template.spec.containers[{warned}]"]
    )


def test_an_update_is_not_told_of_it_again() -> None:
    nodes = store("tidegate.dev/isolation")
    old = from_manifest(admit(deployment(container()), None, nodes).manifest)
    assert admit(deployment(container()), old, nodes).warnings == ()


@pytest.mark.parametrize("annotations", [(), ("tidegate.dev/simulated",)])
def test_where_no_node_is_known_to_run_processes_nothing_is_said(annotations: tuple[str, ...]) -> None:
    assert admit(deployment(container()), None, store(*annotations)).warnings == ()


def test_the_ray_plugin_gives_its_containers_a_command() -> None:
    ray = job(None, (1, None), plugins={"ray": []})
    ray["spec"]["tasks"][0]["template"]["spec"]["containers"] = [container()]
    assert not any("command" in told for told in admit(ray, None, store("tidegate.dev/isolation")).warnings)


def test_a_minimum_below_that_of_its_tasks_is_pointed_out() -> None:
    (warning,) = admit(job(1, (1, None), (6, None)), None, store()).warnings
    assert warning.startswith("spec.minAvailable is 1, but its tasks need 7 pods, and all 7 start together")


@pytest.mark.parametrize("fine", [job(2, (8, 2)), job(None, (3, None)), job(3, (3, None))])
def test_a_minimum_that_its_tasks_agree_with_is_not(fine: Manifest) -> None:
    assert admit(fine, None, store()).warnings == ()


def pod(**annotations: str) -> Manifest:
    metadata = {"name": "p", "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container(command=["true"])]},
    }


@pytest.mark.parametrize("text", ["soon", "-5m", ""])
def test_an_expected_run_time_that_is_no_duration_is_refused(text: str) -> None:
    annotations = {"tidegate.dev/running-estimate": text}
    rule = r'annotations\["tidegate.dev/running-estimate"\].* must be a duration'
    with pytest.raises(Rejected, match="metadata." + rule):
        admit(pod(**annotations), None, store())
    made = deployment(container(command=["true"]))
    made["spec"]["template"]["metadata"] |= {"annotations": annotations}
    with pytest.raises(Rejected, match="spec.template.metadata." + rule):
        admit(made, None, store())


def test_other_times_that_are_none_are_told_to_have_no_effect() -> None:
    (warning,) = admit(pod(**{"volcano.sh/cooldown-time": "soon"}), None, store()).warnings
    assert "cooldown-time" in warning
    assert "it has no effect" in warning
