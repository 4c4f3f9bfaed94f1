"""Images of this checkout's services and of the bus without Docker: code and packages of this environment, in layers.

They have what deploy/images/Dockerfile gives its images: user, variables, entry point. TIDEGATE_IMAGES names a folder of archives
(`docker save tidegate/admission:0.1.0 -o FOLDER/admission.tar`, and so on) that are to be taken instead.
"""

import os
import re
import shutil
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import yaml
from lab_image import Image, Layer, add_libraries, layer, python_layer, root_owned, write_images
from packaging.requirements import Requirement

from tidegate.services import SERVICES

ROOT = Path(__file__).resolve().parents[2]
USER = 65532
_HOME = "opt/tidegate"
_ENVIRONMENT = {
    "PYTHONPATH": f"/{_HOME}/code:/{_HOME}/packages",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TIDEGATE_DATA_DIR": "/var/lib/tidegate",
}


def service_archives(folder: Path) -> list[Path]:
    """Archives with the images that the charts name."""
    given = os.environ.get("TIDEGATE_IMAGES")
    if given:
        return sorted(Path(given).glob("*.tar"))
    target = folder / "services.tar"
    tag = str(yaml.safe_load((ROOT / "deploy/helm/tidegate/Chart.yaml").read_text())["appVersion"])
    layers = (python_layer(), _packages(), _code())
    images = [
        Image(
            f"tidegate/{service.replace('_', '-')}:{tag}",
            ("python3", "-m", f"{service}.main"),
            layers,
            USER,
            _ENVIRONMENT,
        )
        for service in SERVICES
    ]
    write_images(target, [*images, Image(f"tidegate/nats:{tag}", ("/nats-server",), (_bus(),), USER, {})])
    return [target]


def _code() -> Layer:
    """Our own packages, of which a pod needs no tests."""

    def write(archive: tarfile.TarFile) -> None:
        for source in sorted([*ROOT.glob("libs/*/src"), *ROOT.glob("services/*/src")]):
            archive.add(source, f"{_HOME}/code", filter=_without_compiled)

    return layer(write)


def _without_compiled(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.name.endswith("__pycache__") else root_owned(entry)


def _packages() -> Layer:
    """The packages of others that the services need, with all that these need."""

    def write(archive: tarfile.TarFile) -> None:
        written: set[Path] = set()
        for distribution in _needed():
            for file in distribution.files or ():
                place = Path(str(distribution.locate_file(file)))
                if ".." not in file.parts and place.is_file() and place not in written:
                    written.add(place)
                    archive.add(place, f"{_HOME}/packages/{file}", filter=root_owned)
        add_libraries(archive, sorted(place for place in written if ".so" in place.suffixes))

    return layer(write)


def _needed() -> Iterator[metadata.Distribution]:
    ours = {
        _name(line)
        for file in ROOT.glob("*/*/pyproject.toml")
        for line in re.findall(r'^name = "(.+)"', file.read_text(), re.M)
    }
    # Programs in pods of models are no services: what they need may not even go together with ours.
    waiting = [need for name in SERVICES for need in _dependencies(ROOT / "services" / name / "pyproject.toml")]
    waiting += [need for file in ROOT.glob("libs/*/pyproject.toml") for need in _dependencies(file)]
    seen = set(ours)
    while waiting:
        wanted = Requirement(waiting.pop())
        name = _name(wanted.name)
        if name in seen or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        distribution = metadata.distribution(name)
        yield distribution
        waiting += distribution.requires or []


def _dependencies(file: Path) -> list[str]:
    import tomllib

    return list(tomllib.loads(file.read_text())["project"].get("dependencies", ()))


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def _bus() -> Layer:
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = beside if beside.exists() else shutil.which("nats-server")
    assert found is not None, "nats-server is not installed"

    def write(archive: tarfile.TarFile) -> None:
        archive.add(found, "nats-server", filter=root_owned)

    return layer(write)
