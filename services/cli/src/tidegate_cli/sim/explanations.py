"""What a user is told about a pod, and what its container is given."""

from cluster_gateway.secrets import Secrets
from kube import Key, Object, Store
from kube.devices import device_variables
from kube.environment import Sources, environment

GROUP_KIND = "PodGroup.scheduling.volcano.sh"
GROUP = "scheduling.k8s.io/group-name"


def message_of(pod: Object, store: Store) -> str:
    """The reasons for the state in which a pod is: its own conditions', then those of its group."""
    group = store.get(Key(GROUP_KIND, pod.namespace, pod.annotations.get(GROUP, "")))
    told = [pod, *([group] if group is not None else [])]
    conditions = [condition for item in told for condition in item.status.get("conditions") or ()]
    return "; ".join(str(condition["message"]) for condition in conditions if condition.get("message"))


def environment_of(pod: Object, store: Store, secrets: Secrets) -> dict[str, str]:
    """The environment of a pod's first container, with what it refers to filled in."""
    containers = pod.spec.get("containers") or [{}]
    maps = {
        f"{key.namespace}/{key.name}": item.body.get("data") or {} for key, item in store.of_kind("ConfigMap").items()
    }
    values = {f"{key.namespace}/{key.name}": secrets.get(key) or {} for key in store.of_kind("Secret")}
    manifest, name = pod.manifest(), containers[0].get("name", "")
    # What the node's agent adds to what the manifest says.
    return environment(manifest, name, Sources(maps, values)).variables | device_variables(manifest, name)
