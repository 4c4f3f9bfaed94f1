"""Where everything lies below the data folder, and the records that are kept there.

agent.lock  spawner.log
pods/<uid>/  pod.json  record.json  hosts  state/<container>.<attempt>.json  home/  tmp/  stage/  volumes/<name>/
claims/<namespace>/<claim>/
logs/<namespace>_<pod>_<uid>/<container>.log  .log.1  .log.2

Beside it, in the machine's shared memory: tidegate-<...>/ of each pod.
"""

import json
import os
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from kube import Manifest

SHARED_MEMORY = Path("/dev/shm")


def _make(folder: Path, mode: int, owner: int, group: int) -> None:
    """Make ``folder``, unless it is there and theirs: then its mode is as its user wants it."""
    if folder.is_dir():
        there = folder.stat()
        if owner in (-1, there.st_uid) and group in (-1, there.st_gid):
            return
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)
    os.chown(folder, owner, group)  # last: what belongs to them is finished


@dataclass(frozen=True, slots=True)
class PodFolder:
    """The folder of one pod."""

    root: Path

    @property
    def hosts(self) -> Path:
        return self.root / "hosts"

    @property
    def home(self) -> Path:
        """The home and working folder of its processes."""
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def stage(self) -> Path:
        """An empty folder to mount on while its namespace is made."""
        return self.root / "stage"

    @property
    def shared_memory(self) -> Path:
        """What its containers see as /dev/shm; it goes with the pod, whatever a process that was killed has left there."""
        return SHARED_MEMORY / f"tidegate-{sha256(str(self.root).encode()).hexdigest()[:16]}"

    def volume(self, name: str) -> Path:
        return self.root / "volumes" / name

    def state(self, container: str, attempt: int) -> Path:
        """The shim's file of one attempt of a container."""
        return self.root / "state" / f"{container}.{attempt}.json"

    def create(self, owner: int, group: int) -> None:
        """Make the folder; others than its own user and group may not enter it. -1 leaves owner and group as they are.

        What an agent left that was killed before it had noted who the pod runs as is made over to ``owner`` and ``group``.
        """
        _make(self.root, 0o710, -1, group)
        _make(self.root / "volumes", 0o710, -1, group)
        _make(self.home, 0o2770, owner, group)
        _make(self.tmp, 0o3770, owner, group)
        for folder in (self.root / "state", self.stage):
            folder.mkdir(mode=0o700, exist_ok=True)
        if os.access(SHARED_MEMORY, os.W_OK):
            _make(self.shared_memory, 0o3777, -1, group)

    def save(self, name: str, data: Any) -> None:
        """Write ``data`` as JSON to the file ``name``, whole or not at all."""
        draft = self.root / f"{name}.new"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as stream:
            json.dump(data, stream)
        draft.replace(self.root / name)

    def load(self, name: str) -> Any:
        """What ``save`` wrote; None when there is nothing, or nothing readable."""
        return read_json(self.root / name)

    def remove_shared_memory(self) -> None:
        """Give back what its processes have left there."""
        shutil.rmtree(self.shared_memory, ignore_errors=True)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        self.remove_shared_memory()
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The agent's data folder."""

    root: Path

    def pod(self, uid: str) -> PodFolder:
        """The folder of the pod ``uid``; raises ValueError when that is no name of a folder."""
        if uid in ("", ".", "..") or "/" in uid:
            raise ValueError(f"{uid!r} is no uid of a pod")
        return PodFolder(self.root / "pods" / uid)

    def claim(self, namespace: str, name: str) -> Path:
        return self.root / "claims" / namespace / name

    def logs(self, namespace: str, name: str, uid: str) -> Path:
        return self.root / "logs" / f"{namespace}_{name}_{uid}"

    def find_logs(self, uid: str) -> Path | None:
        """The log folder of a pod, of one that is gone too."""
        return next((self.root / "logs").glob(f"*_{uid}"), None)

    @property
    def stage(self) -> Path:
        """An empty folder to try mounts on."""
        return self.root / "stage"

    def create(self) -> None:
        """Make the folders; each pod's own folder is closed, what is above it may be passed."""
        for name, mode in (("pods", 0o711), ("claims", 0o711), ("logs", 0o700), ("stage", 0o700)):
            folder = self.root / name
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)

    def note_boot(self) -> bool:
        """Whether the machine was started anew since this was called last: no process number of then means anything."""
        file, now = self.root / "boot_id", Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        before = (file.read_text().strip() if file.exists() else "") or now
        if not file.exists() or before != now:
            draft = file.with_name(f"{file.name}.new")
            draft.write_text(now + "\n")
            draft.replace(file)
        return before != now

    def kept_pods(self) -> dict[str, Manifest]:
        """The manifests of the pods that have a folder, by uid."""
        found: dict[str, Manifest] = {}
        for folder in sorted((self.root / "pods").iterdir()):
            manifest = read_json(folder / "pod.json")
            if manifest:
                found[folder.name] = manifest
            else:  # it was never begun
                PodFolder(folder).remove()
        return found


def read_json(file: Path) -> Any:
    """The content of a JSON file; None when there is none or it is not JSON."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None
