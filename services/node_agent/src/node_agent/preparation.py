"""From a container's manifest to the request that starts it: who it is, what it is given, what it sees."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube import Manifest
from kube.devices import device_variables
from kube.environment import containers, environment, expand_all
from node_agent.domain.containers import Container, Pod
from node_agent.domain.identity import RunAs, host_name, hosts_file, run_as
from node_agent.domain.limits import Limits, container_limits, pod_limits
from node_agent.domain.local_groups import is_best_effort, pod_folder
from node_agent.domain.programs import relocated
from node_agent.domain.volumes import Mount, Origin, UnsupportedVolume, Volume, mounts, variable_name, volumes
from node_agent.needs import NeverPossible, NotYet, Secrets
from node_agent.node import Node
from node_agent.runtime.ending import POD_MARK
from node_agent.runtime.folders import SHARED_MEMORY, PodFolder
from node_agent.runtime.logs import set_aside
from node_agent.runtime.materials import make_inside, place_volume, write_hosts
from node_agent.stand_in import StandIn

_RESOLVER = Path(__file__).with_name("runtime") / "resolver"
_PYTHON = Path(sys.executable)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Preparation:
    """One start of one container: the request for its shim, and what could not be put in force for it, by condition."""

    request: dict[str, Any]
    notes: dict[str, str]


class PodPreparation:
    """Prepares the containers of one pod."""

    def __init__(self, node: Node, pod: Pod, manifest: Manifest, folder: PodFolder, user_id: int) -> None:
        self.node, self.pod, self.manifest, self.folder, self.user_id = node, pod, manifest, folder, user_id
        self.namespaces = node.isolation.namespaces
        self.group = self._find_group()
        self.log_folder = node.data.logs(pod.namespace, pod.name, pod.uid)
        self._stand_in = StandIn(node.settings, lambda: self.manifest)

    @property
    def restart_policy(self) -> str:
        """Always, OnFailure or Never, as it holds for the pod."""
        return str(self.manifest["spec"].get("restartPolicy") or "Always")

    def create_folder(self) -> None:
        """Make the pod's folder with its hosts file."""
        self.folder.create(self._owner(), self.user_id)
        self.write_hosts()

    def write_hosts(self) -> bool:
        """Bring the pod's hosts file up to date; whether it was changed."""
        peers = self.node.hosts.get(self.pod.namespace, ())
        return write_hosts(self.folder.hosts, hosts_file(self.manifest, peers))

    def has_files(self) -> bool:
        """Whether the pod has volumes that follow other objects."""
        kinds = {"configMap", "secret", "downwardAPI", "projected"}
        return any(kinds & volume.keys() for volume in self.manifest["spec"].get("volumes") or ())

    def refresh_volumes(self, secrets: Secrets) -> None:
        """Bring the volumes that are made of ConfigMaps up to date; one whose source is gone stays as it is."""
        for volume in volumes(self.manifest, self.node.sources(secrets)):
            if volume.origin is Origin.FILES and not volume.missing and self.folder.volume(volume.name).is_dir():
                self._place(volume)

    def prepare(self, container: Container, attempt: int, secrets: Secrets) -> Preparation:
        """The request that starts ``container``; makes its volumes, its groups and its log folder.

        Raises NotYet, NeverPossible, and OSError when a folder cannot be made.
        """
        manifest = self.container_manifest(container.name)
        self._stand_in.check(container, manifest)
        self.write_hosts()
        placed = self._place_volumes(secrets)
        found_mounts = mounts(manifest)
        request = self.inside_request(container, secrets)
        notes = self._enforce(container, manifest, request)
        if self.namespaces:
            request["view"] = self._view(request, manifest, found_mounts, placed)
        else:
            for mount in found_mounts:
                source = self._source(mount, placed)
                request["env"].setdefault(variable_name(mount.volume), str(source))
                notes["tidegate.dev/MountsInForce"] = (
                    f"{self.node.isolation.why_no_namespaces}: volumes are not at their mount paths, "
                    "variables TIDEGATE_VOLUME_<NAME> name their folders"
                )
            if self._stand_in.program(manifest) is not None:
                folders = {mount.path: str(self._source(mount, placed)) for mount in found_mounts}
                request["argv"] = relocated(request["argv"], folders)
        notes |= self._stand_in.note()
        self.log_folder.mkdir(parents=True, exist_ok=True)
        set_aside(self.log_file(container.name))
        request |= {
            "attempt": attempt,
            "state": str(self.folder.state(container.name, attempt)),
            "log": str(self.log_file(container.name)),
            "oom": self.node.isolation.cgroups.oom_file(self.group_of(container.name)),
        }
        return Preparation(request, notes)

    def inside_request(self, container: Container, secrets: Secrets) -> dict[str, Any]:
        """What a process in ``container`` is given: who it is, its variables, its working folder and groups."""
        manifest = self.container_manifest(container.name)
        variables = self._variables(container, secrets)
        words = self._stand_in.words(manifest)
        identity = self._identity(manifest)
        return {
            "argv": expand_all(words, variables),
            "env": variables,
            "cwd": str(manifest.get("workingDir") or self.folder.home),
            "cgroups": self.node.isolation.cgroups.process_files(self.group_of(container.name)),
            "identity": None if identity is None
            else {"user": identity.user_id, "group": identity.group_id, "groups": list(identity.groups)},
            "own_user": self.node.isolation.own_user,
        }  # fmt: skip

    def container_manifest(self, name: str) -> Manifest:
        return next(item for item in containers(self.manifest) if item.get("name") == name)

    def log_file(self, container: str) -> Path:
        return self.log_folder / f"{container}.log"

    def _variables(self, container: Container, secrets: Secrets) -> dict[str, str]:
        found = environment(self.manifest, container.name, self.node.sources(secrets), self._base(container))
        if found.missing:
            message = "; ".join(str(one) for one in found.missing)
            raise NotYet(
                "CreateContainerConfigError", message, again=any(one.kind == "Secret" for one in found.missing)
            )
        variables = found.variables | device_variables(self.manifest, container.name)
        if not self.namespaces:
            variables["TIDEGATE_HOSTS"] = str(self.folder.hosts)
            given = variables.get("PYTHONPATH")
            variables["PYTHONPATH"] = f"{_RESOLVER}:{given}" if given else str(_RESOLVER)
        return variables

    def _base(self, container: Container) -> dict[str, str]:
        """What a process has before its own: what everyone has, nothing of it from the agent, and what its image brings."""
        name = f"pod-{self.user_id}" if self.user_id >= 0 else "pod"
        base = {
            "PATH": f"{_PYTHON.parent}:{SYSTEM_PATH}",
            "HOSTNAME": host_name(self.manifest),
            "HOME": str(self.folder.home),
            "TMPDIR": str(self.folder.tmp),
            "USER": name,
            "LOGNAME": name,
            "LANG": "C.UTF-8",
            POD_MARK: self.pod.uid,
        }
        return self._stand_in.over(base, self.container_manifest(container.name))

    def _identity(self, manifest: Manifest) -> RunAs | None:
        if self.user_id < 0:
            return None
        try:
            found = run_as(self.manifest, manifest, self.user_id, self.node.settings.allow_root)
        except ValueError as error:
            raise NeverPossible("RunAsUserRefused", str(error)) from None
        # The pod's own group opens the pod's folder to whatever user a container runs as.
        return RunAs(found.user_id, found.group_id, tuple(sorted({*found.groups, self.user_id})))

    def _owner(self) -> int:
        """The user whom the pod's files belong to: that of its first main container."""
        if self.user_id < 0:
            return -1
        main = (self.manifest["spec"].get("containers") or [{}])[0]
        try:
            return run_as(self.manifest, main, self.user_id, allow_root=True).user_id
        except ValueError:
            return self.user_id

    def _place_volumes(self, secrets: Secrets) -> dict[str, Path]:
        try:
            found = volumes(self.manifest, self.node.sources(secrets))
        except UnsupportedVolume as error:
            raise NeverPossible("VolumeNotSupported", str(error)) from None
        missing = [(volume.name, one) for volume in found for one in volume.missing]
        if missing:
            message = "; ".join(f"volume {name}: {one}" for name, one in missing)
            again = any(one.kind == "Secret" for _, one in missing)
            raise NotYet("CreateContainerConfigError", message, again)
        return {volume.name: self._place(volume) for volume in found}

    def _place(self, volume: Volume) -> Path:
        try:
            return place_volume(self.node.data, self.folder, self.pod.namespace, volume, self._owner(), self.user_id)
        except FileNotFoundError as error:
            raise NotYet("FailedMount", f"volume {volume.name}: {error.filename} is not there", again=True) from None

    def _source(self, mount: Mount, placed: Mapping[str, Path]) -> Path:
        if mount.volume not in placed:
            raise NeverPossible("VolumeNotFound", f"volumeMounts names {mount.volume!r}, which is not in spec.volumes")
        if mount.sub_path:
            make_inside(placed[mount.volume], mount.sub_path)
        return placed[mount.volume] / mount.sub_path

    def _view(
        self, request: Mapping[str, Any], manifest: Manifest, found: tuple[Mount, ...], placed: Mapping[str, Path]
    ) -> dict[str, Any]:
        seen = [_mounted(self.folder.hosts, "/etc/hosts", read_only=True)]
        if self.folder.shared_memory.is_dir():
            seen.append(_mounted(self.folder.shared_memory, str(SHARED_MEMORY), read_only=False))
        if manifest.get("workingDir") and not Path(request["cwd"]).exists():
            seen.append(_mounted(self.folder.home, request["cwd"], read_only=False))
        for mount in found:
            source = self._source(mount, placed)
            seen.append(_mounted(source, mount.path, mount.read_only, placed[mount.volume]))
        own = [self.folder.home, self.folder.tmp, _PYTHON, _PYTHON.resolve(), Path(sys.prefix), Path(sys.base_prefix)]
        return {
            "stage": str(self.folder.stage),
            "host_name": host_name(self.manifest),
            "mounts": seen,
            "reach": [*map(str, own), *self._stand_in.reach(manifest), *self.node.settings.visible_paths],
        }

    def _enforce(self, container: Container, manifest: Manifest, request: dict[str, Any]) -> dict[str, str]:
        """Make the pod's and the container's groups; returns a note when limits that it has are not in force."""
        cgroups, own = self.node.isolation.cgroups, container_limits(self.manifest, manifest)
        main = [container_limits(self.manifest, item) for item in self.manifest["spec"].get("containers") or ()]
        try:
            refused = cgroups.make(self.group, self._pod_limits(main))
            refused += cgroups.make(self.group_of(container.name), own)
            self.node.put_in_force(self.pod.uid)
        except OSError as error:
            refused = [str(error)]
            request["cgroups"] = []
        if not cgroups.version and (own.cpu_milli or own.memory_bytes):
            refused = [cgroups.why]
        return {"tidegate.dev/LimitsInForce": f"container {container.name}: {'; '.join(refused)}"} if refused else {}

    def _pod_limits(self, main: list[Limits]) -> Limits:
        """The limits of the whole pod; with init containers or sidecars beside the main ones only each one's own hold."""
        found = pod_limits(self.manifest, main, self.node.settings.pids_per_pod)
        if self.manifest["spec"].get("initContainers"):
            return Limits(None, found.cpu_request_milli, None, found.pids, found.cpu_set)
        return found

    def group_of(self, container: str) -> str:
        """The control group of a container."""
        return f"{self.group}/{container}"

    def _find_group(self) -> str:
        """The pod's control group: the one that a predecessor of the agent made, whatever the pod says by now."""
        wanted = is_best_effort(self.manifest)
        there = [wanted, not wanted]
        found = (pod_folder(self.pod.uid, one) for one in there)
        made = (one for one in found if self.node.isolation.cgroups.exists(one))
        return next(made, pod_folder(self.pod.uid, wanted))


def _mounted(source: Path, target: str, read_only: bool, within: Path | None = None) -> dict[str, Any]:
    real = os.path.realpath(within or source)
    return {"source": str(source), "target": target, "read_only": read_only, "within": real}
