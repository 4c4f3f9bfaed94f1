"""Helm on a control plane of the lab: releases of our charts, and what they are rendered to."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from control_plane import ControlPlane
from lab_programs import programs

from tidegate.services import SERVICES

CHARTS = Path(__file__).resolve().parents[2] / "deploy" / "helm"
SERVICE_CHARTS = tuple(name.replace("_", "-") for name in SERVICES)
"""One for each service."""

NAMESPACE = "tidegate-system"
Manifest = dict[str, Any]

TRIAL = {
    "definitions": {"podAnnotations": {"lab/runs-for": "1s"}},
    "nats": {"storage": {"ephemeral": True}},
}
"""Values for a cluster whose nodes only pretend to run pods, and where nobody provides volumes."""

THREE = {"nats": {"replicas": 3}, "global": {"nats": {"streamReplicas": 3}}}
BUS = {"url": "nats://bus.example:4333"}
EXTERNAL = {
    "nats": {"enabled": False},
    "global": {"nats": {"external": {**BUS, "credentialsPrefix": "bus-", "authoritySecret": "bus-ca"}}},
}
OVER_TLS = {"global": {"nats": {"tls": {"enabled": True}}}}


@dataclass(frozen=True, slots=True)
class Helm:
    """The program, in a folder of its own for what it remembers; on ``plane`` where there is one."""

    folder: Path
    plane: ControlPlane | None = None

    def run(
        self, *words: str, values: Manifest | None = None, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """One command. ``values`` are given as a file."""
        given: Sequence[str] = ()
        if values is not None:
            file = self.folder / "values.json"
            file.write_text(json.dumps(values))
            given = ("--values", str(file))
        environment = {**os.environ, **{f"HELM_{name}_HOME": str(self.folder) for name in ("CACHE", "CONFIG", "DATA")}}
        if self.plane is not None:
            environment["KUBECONFIG"] = str(self.plane.kubeconfig)
        command = [str(programs("helm")["helm"]), *words, *given]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        told = "\n".join(line for line in done.stderr.splitlines() if "symbolic link" not in line)
        assert not check or done.returncode == 0, told
        return done

    def template(
        self, chart: str, values: Manifest | None = None, *words: str, release: str = "tidegate"
    ) -> list[Manifest]:
        """The objects that the chart is rendered to."""
        done = self.run("template", release, str(CHARTS / chart), "--namespace", NAMESPACE, *words, values=values or {})
        return [
            item for item in yaml.load_all(done.stdout, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if item
        ]

    def install(self, chart: str, values: Manifest | None = None, *words: str, release: str = "tidegate") -> str:
        """Install the chart, or upgrade its release; what Helm says."""
        place = ("--namespace", NAMESPACE, "--create-namespace")
        return self.run(
            "upgrade", "--install", release, str(CHARTS / chart), *place, *words, values=values or {}
        ).stdout


def deep(*layers: Manifest) -> Manifest:
    """The layers over one another."""
    result: Manifest = {}
    for layer in layers:
        for name, value in layer.items():
            there = result.get(name)
            result[name] = deep(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return result


def of_kind(objects: Sequence[Manifest], *kinds: str) -> list[Manifest]:
    return [item for item in objects if item["kind"] in kinds]


def named(objects: Sequence[Manifest], kind: str, name: str) -> Manifest:
    (found,) = [item for item in of_kind(objects, kind) if item["metadata"]["name"] == name]
    return found


def pods(objects: Sequence[Manifest]) -> Iterator[tuple[str, Manifest]]:
    for item in of_kind(objects, "Deployment", "StatefulSet", "DaemonSet", "Job"):
        yield item["metadata"]["name"], item["spec"]["template"]["spec"]


def arguments(objects: Sequence[Manifest], name: str) -> dict[str, str]:
    (spec,) = [spec for found, spec in pods(objects) if found == name]
    return dict(word.removeprefix("--").split("=", 1) for word in spec["containers"][0]["args"])
