"""Records what a real API server's watch of pods says while pods are made, bound, run, end and go.

`python tests/kubernetes/record_watch.py FILE` writes FILE: gzip of one JSON line for the list, then the lines of the watch.
"""

import gzip
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from control_plane import ControlPlane, control_plane, node

PODS, NODES = 150, 5
PATH = "/api/v1/namespaces/default/pods"


def pod(number: int) -> Any:
    job = f"train-{number // 10}"
    return {
        "metadata": {
            "name": f"{job}-worker-{number % 10}",
            "labels": {"volcano.sh/job-name": job, "volcano.sh/queue-name": "default", "app": "train"},
            "annotations": {"scheduling.k8s.io/group-name": job, "lab/runs-for": "1s"},
        },
        "spec": {
            "schedulerName": "tidegate",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/train:1",
                    "command": ["python", "train.py"],
                    "env": [{"name": "WORLD_SIZE", "value": "10"}, {"name": "RANK", "value": str(number % 10)}],
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}},
                }
            ],
        },
    }


def follow(plane: ControlPlane, version: str, lines: list[bytes]) -> None:
    """Take down the watch until the server ends it."""
    path = f"{PATH}?watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=100"
    lines += plane.lines(path, 120)


def drive(plane: ControlPlane) -> None:
    """Let pods live."""
    for number in range(PODS):
        plane.request("POST", PATH, pod(number))
    for number in range(PODS):
        name = pod(number)["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": f"n{number % NODES}"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        plane.request("POST", f"{PATH}/{name}/binding", binding)
    time.sleep(12)
    for number in range(PODS):
        plane.request("DELETE", f"{PATH}/{pod(number)['metadata']['name']}")


def main() -> None:
    lines: list[bytes] = []
    with control_plane(Path(tempfile.mkdtemp())) as plane:
        for number in range(NODES):
            plane.request("POST", "/api/v1/nodes", node(f"n{number}", gpus=64))
        listed = plane.request("GET", "/api/v1/pods")
        watching = threading.Thread(target=follow, args=(plane, listed["metadata"]["resourceVersion"], lines))
        watching.start()
        drive(plane)
        watching.join()
    with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as file:
        file.write(json.dumps(listed).encode() + b"\n" + b"".join(lines))
    print(f"{len(lines)} changes, {sum(map(len, lines))} bytes")


if __name__ == "__main__":
    main()
