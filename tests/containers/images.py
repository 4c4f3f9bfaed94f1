"""The images of this checkout, built by its one Dockerfile on what base there is."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from daemon import NoDocker

from tidegate.services import SERVICES

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
DEBIAN = "tidegate/base:bookworm"
PROMETHEUS = "tidegate/prometheus:bookworm"
OFFICIAL = "python:3.11-slim"
BUILD_SECONDS = 900.0


def name_of(service: str) -> str:
    """The name of a service's image; of the bus's for ``nats``."""
    return f"tidegate/{service.replace('_', '-')}:{VERSION}"


def docker(*words: str, seconds: float = 60.0) -> str:
    """What a command of docker prints. Raises CalledProcessError with its errors."""
    done = subprocess.run(
        ["docker", *words], cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=seconds, check=False
    )
    if done.returncode:
        raise AssertionError(f"docker {' '.join(words)}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def _environment() -> dict[str, str]:
    """The newer builder is a plug-in of docker; without it the older one does."""
    return os.environ | ({} if has_plugin("buildx") else {"DOCKER_BUILDKIT": "0"})


def has_plugin(name: str) -> bool:
    """Whether the command docker has this plug-in."""
    return subprocess.run(["docker", name, "version"], capture_output=True, check=False).returncode == 0


def compose() -> list[str]:
    """The command of Docker Compose: docker's plug-in, or the program that the Kubernetes lab has built. Raises NoDocker."""
    if has_plugin("compose"):
        return ["docker", "compose"]
    sys.path.append(str(ROOT / "tests" / "kubernetes"))
    from lab_programs import NoLab, programs

    try:
        return [str(programs("docker-compose")["docker-compose"])]
    except NoLab as error:
        raise NoDocker(f"docker has no plug-in compose, and the lab's program is not there: {error}") from None


def exists(image: str) -> bool:
    """Whether the daemon has the image."""
    return bool(docker("images", "--quiet", image).strip())


def base() -> str:
    """An image with Python: TIDEGATE_BASE_IMAGE, one that is there, the official one, or one of Debian's packages.

    Raises NoDocker where none can be had.
    """
    if given := os.environ.get("TIDEGATE_BASE_IMAGE"):
        return given
    for image in (DEBIAN, OFFICIAL):
        if exists(image):
            return image
    try:
        docker("pull", "--quiet", OFFICIAL, seconds=300)
        return OFFICIAL
    except (AssertionError, subprocess.TimeoutExpired):
        return from_debian(DEBIAN, "python3", "python3-venv", "python-is-python3")


def from_debian(image: str, *packages: str, entrypoint: str = "") -> str:
    """An image of Debian's packages, made once. Raises NoDocker."""
    if exists(image):
        return image
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        raise NoDocker(
            f"{image} cannot be made: no registry is reached, and Debian's packages need root and debootstrap"
        )
    script = ROOT / "deploy" / "images" / "from-debian.sh"
    done = subprocess.run(
        [str(script), image, *packages],
        env={**os.environ, "ENTRYPOINT": entrypoint},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        raise NoDocker(f"{image} cannot be made: {done.stderr.strip()[-500:]}")
    return image


def build(service: str, base_image: str, *flags: str, tag: str = "") -> str:
    """Build the image of a service, of a program in pods of models, or of the bus for ``nats``; its name."""
    made = tag or name_of(service)
    target = "nats" if service == "nats" else "service" if service in SERVICES else "program"
    what = ["--target", target, *(() if target == "nats" else ("--build-arg", f"SERVICE={service}"))]
    words = ["build", "--network", "host", "--file", "deploy/images/Dockerfile", "--build-arg", f"BASE={base_image}"]
    words += ["--build-arg", "PIP_INDEX_URL", "--build-arg", "PIP_CERT"]
    lock = ROOT / "services" / service / "requirements.lock"
    if lock.exists():
        what += ["--build-arg", f"LOCK={lock.relative_to(ROOT)}"]
    docker(*words, *what, *flags, "--tag", made, ".", seconds=BUILD_SECONDS)
    return made


def layers(image: str) -> str:
    """The digests of an image's layers."""
    return docker("inspect", "--format", "{{json .RootFS.Layers}}", image)


def health_check(image: str) -> list[str] | None:
    """The command by which a daemon asks a container of the image how it is; None without one."""
    check = json.loads(docker("inspect", "--format", "{{json .Config.Healthcheck}}", image))
    return None if check is None or check["Test"] == ["NONE"] else check["Test"]
