"""The pods of each component: what a runtime, its models, its place in the service and an agent add to what it says itself."""

import json
from dataclasses import replace
from hashlib import sha256

from inference_autoscaler.domain.images import Images
from inference_autoscaler.domain.serving.children import CONTAINER_PORT, component_name, serving_port
from inference_autoscaler.domain.serving.component import PREDICTOR, Component
from inference_autoscaler.domain.serving.departure import going_slowly
from inference_autoscaler.domain.serving.inference_service import Inference
from inference_autoscaler.domain.serving.model_storage import credentials, with_models
from inference_autoscaler.domain.serving.runtime_pods import made_of_runtime
from inference_autoscaler.domain.serving.runtimes import CONTAINER, SOURCE
from kube import Manifest, Object, Store


def resolved(item: Object, spec: Inference, store: Store, images: Images) -> Inference:
    """With the pods that each component has in the end, ``images`` in what is added to them. Raises NoRuntime."""
    host = f"{component_name(item, spec.predictor)}.{item.namespace}"
    components = tuple(_resolved(item, one, host, store, images) for one in spec.components)
    canaries = tuple(
        replace(one, component=_resolved(item, one.component, host, store, images)) for one in spec.canaries
    )
    return replace(spec, components=components, canaries=canaries)


def _resolved(item: Object, component: Component, host: str, store: Store, images: Images) -> Component:
    made = component
    if component.model is not None:
        runtime = made_of_runtime(component.model, item, component.pod, store)
        labels = {**runtime.labels, **component.labels}
        annotations = {**runtime.annotations, **component.annotations}
        made = replace(made, pod=runtime.pod, labels=labels, annotations=annotations, runtime=runtime.runtime)
    elif component.role != PREDICTOR:
        first, *others = component.pod["containers"]
        made = replace(made, pod={**component.pod, "containers": [_told(first, item.name, host, component), *others]})
    complete = _with_agent(item, _with_models(item, made, store, images.storage_initializer), images.agent)
    return replace(complete, pod=going_slowly(complete.pod), digest=_digest(complete))


def _with_models(item: Object, component: Component, store: Store, image: str) -> Component:
    if not component.sources:
        return component
    known = credentials(item.namespace, str(component.pod.get("serviceAccountName") or ""), store)
    if component.model is not None:
        known += component.model.fetches
    servers = sorted({CONTAINER, str(component.pod["containers"][0]["name"])})
    annotations = {**component.annotations, SOURCE: component.sources[0].uri}
    pod = with_models(component.pod, servers, component.sources, known, image)
    return replace(component, pod=pod, annotations=annotations)


def _with_agent(item: Object, component: Component, image: str) -> Component:
    if component.agent is None:
        return component
    agent = component.agent.container(item.name, component.role, serving_port(component.pod), image)
    return replace(component, pod={**component.pod, "containers": [*component.pod["containers"], agent]})


def _digest(component: Component) -> str:
    annotations = sorted(component.pod_annotations.items())
    content = json.dumps([component.pod, component.labels, component.concurrency, annotations], sort_keys=True)
    return sha256(content.encode()).hexdigest()[:16]


def _told(container: Manifest, name: str, host: str, component: Component) -> Manifest:
    """A transformer or explainer is told whom it is for and who predicts, unless it says so itself."""
    given: list[str] = [*(container.get("args") or ())]
    said = {"--model_name": name, "--predictor_host": host, "--http_port": str(CONTAINER_PORT)}
    if component.concurrency is not None:
        said["--workers"] = str(component.concurrency)
    flags = {word.partition("=")[0] for word in given}
    added = [word for flag, value in said.items() if flag not in flags for word in (flag, value)]
    return {**container, "args": [*given, *added]}
