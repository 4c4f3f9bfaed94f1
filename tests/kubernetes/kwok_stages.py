"""What the nodes that kwok plays do with pods."""

from typing import Any


def _stage(name: str, kind: str, selector: list[dict[str, Any]], following: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": selector},
            "next": following,
        },
    }


def _is(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def _exists(key: str, there: bool = True) -> dict[str, Any]:
    return {"key": key, "operator": "Exists" if there else "DoesNotExist"}


_RUNNING = """
{{ $now := Now }}
conditions:
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: Initialized
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: Ready
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: ContainersReady
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
phase: Running
startTime: {{ $now | Quote }}
podIP: 10.0.0.1
"""
_DONE = """
{{ $now := Now }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  state:
    terminated:
      exitCode: 0
      finishedAt: {{ $now | Quote }}
      reason: Completed
      startedAt: {{ $now | Quote }}
{{ end }}
phase: Succeeded
"""
_RUNS_FOR = '.metadata.annotations["lab/runs-for"]'
_NODE = """
{{ $now := Now }}
conditions:
- lastTransitionTime: {{ $now | Quote }}
  reason: KubeletReady
  status: "True"
  type: Ready
"""
STAGES = [
    _stage("node-is-ready", "Node", [_exists(".status.conditions", False)], {"statusTemplate": _NODE}),
    _stage(
        "pod-starts",
        "Pod",
        [_exists(".metadata.deletionTimestamp", False), _exists(".status.podIP", False), _exists(".spec.nodeName")],
        {"statusTemplate": _RUNNING},
    ),
    {
        **(
            done := _stage(
                "pod-ends",
                "Pod",
                [
                    _exists(".metadata.deletionTimestamp", False),
                    _is(".status.phase", "Running"),
                    _exists(_RUNS_FOR),
                ],
                {"statusTemplate": _DONE},
            )
        ),
        "spec": {
            **done["spec"],
            "delay": {"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": _RUNS_FOR}},
        },
    },
    _stage(
        "pod-goes",
        "Pod",
        [_exists(".metadata.deletionTimestamp"), _exists(".spec.nodeName")],
        {"finalizers": {"empty": True}, "delete": True},
    ),
]
"""What kwok's nodes do with pods: start them at once, let those end that say for how long they run, and let go of deleted ones."""
