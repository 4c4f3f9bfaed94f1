"""Who a pod is on the node: the user that it runs as, its host name, the names that it knows."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kube import Manifest


@dataclass(frozen=True, slots=True)
class RunAs:
    """The user and groups of a container's processes."""

    user_id: int
    group_id: int
    groups: tuple[int, ...] = ()


# Below lie the groups of the system itself, some of which (disk, docker) are as good as root.
FIRST_FREE_GROUP = 1_000


class IdentityRefused(ValueError):
    """A pod asks to run as somebody that the node does not let it be."""


def run_as(pod: Manifest, container: Manifest, own_id: int, allow_root: bool) -> RunAs:
    """Whom the container runs as: whom it asks for, else the pod's ``own_id``.

    Raises IdentityRefused when it asks for root or a group of the system's and may not have it, or is root against its
    own ``runAsNonRoot``.
    """
    asked = {**((pod.get("spec") or {}).get("securityContext") or {}), **(container.get("securityContext") or {})}
    user = own_id if asked.get("runAsUser") is None else int(asked["runAsUser"])
    group = user if asked.get("runAsGroup") is None else int(asked["runAsGroup"])
    if 0 in (user, group) and not allow_root:
        raise IdentityRefused(
            f"container {container.get('name')}: securityContext asks for user {user}, group {group}; "
            "this node lets no pod run as root (allow_root is off)"
        )
    if user == 0 and asked.get("runAsNonRoot"):
        raise IdentityRefused(f"container {container.get('name')}: runAsNonRoot is set and the user is 0")
    extra = {int(one) for one in asked.get("supplementalGroups") or ()}
    if asked.get("fsGroup") is not None:
        extra.add(int(asked["fsGroup"]))
    system = sorted(one for one in extra | {group} if one < FIRST_FREE_GROUP and one != user)
    if system and not allow_root:
        raise IdentityRefused(
            f"container {container.get('name')}: securityContext asks for the system's groups {system}; "
            f"this node gives groups from {FIRST_FREE_GROUP} on (allow_root is off)"
        )
    return RunAs(user, group, tuple(sorted(extra)))


def free_user_id(bounds: tuple[int, int], taken: Collection[int]) -> int:
    """The lowest user id of the range that no pod has; the range starts over when it is used up."""
    low, high = bounds
    return next((one for one in range(low, high + 1) if one not in taken), low + len(taken) % (high - low + 1))


def host_name(pod: Manifest) -> str:
    """The pod's own name for itself: ``spec.hostname``, else its name up to 63 characters."""
    spec, metadata = pod.get("spec") or {}, pod.get("metadata") or {}
    return str(spec.get("hostname") or metadata.get("name") or "pod")[:63].rstrip("-.")


def hosts_file(pod: Manifest, peers: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """The hosts file of ``pod``: the loopback names, itself, its ``hostAliases``, and its peers."""
    spec, address = pod.get("spec") or {}, str((pod.get("status") or {}).get("podIP") or "127.0.0.1")
    name, namespace = host_name(pod), (pod.get("metadata") or {}).get("namespace") or "default"
    full = f"{name}.{spec['subdomain']}.{namespace}.svc.cluster.local" if spec.get("subdomain") else ""
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
    lines.append("\t".join(filter(None, (address, full, name))))
    for alias in spec.get("hostAliases") or ():
        lines.append("\t".join([str(alias.get("ip")), *map(str, alias.get("hostnames") or ())]))
    lines += ["\t".join([ip, *names]) for ip, names in peers if names]
    return "\n".join(lines) + "\n"
