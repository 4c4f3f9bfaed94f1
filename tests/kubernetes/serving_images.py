"""Images of what serves models, without a registry: KServe's Python server for scikit-learn, and the program that fetches models.

The packages of others are those of the environments that `tidegate install kserve storage` makes.
"""

import tarfile
from pathlib import Path

from lab_image import Image, Layer, add_libraries, layer, python_layer, root_owned, write_images
from lab_programs import NoLab

import storage_initializer
from inference_autoscaler.domain.images import Images
from node_agent.environments import is_installed
from node_agent.program_list import PACKAGES, SERVERS, default_folder, read_list

SERVES = "kserve/sklearnserver:v0.21.0"
"""As KServe's runtime for scikit-learn names it."""
SERVING_USER, FETCHING_USER = 1000, 65532
"""Those of KServe's images and of ours."""
_CODE, _OTHERS = "opt/code", "opt/packages"
_ENVIRONMENT = {
    "PYTHONPATH": f"/{_CODE}:/{_OTHERS}",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def serving_archive(folder: Path) -> Path:
    """An archive with both images. Raises NoLab where an environment is not installed."""
    python = python_layer()
    server = ("python", f"/{_CODE}/sklearn_server.py")
    fetcher = ("python", "-m", "storage_initializer.main")
    code = _code(SERVERS / "sklearn_server.py", SERVERS / "own_address.py")
    fetching = _code(Path(storage_initializer.__file__).parent)
    target = folder / "serving.tar"
    images = [
        Image(SERVES, server, (python, _packages("kserve"), code), SERVING_USER, _ENVIRONMENT),
        Image(
            Images().storage_initializer, fetcher, (python, _packages("storage"), fetching), FETCHING_USER, _ENVIRONMENT
        ),
    ]
    write_images(target, images)
    return target


def environment(name: str) -> Path:
    """The folder of an environment. Raises NoLab where it is not installed."""
    folder = default_folder() / name
    if not is_installed(folder, read_list(None).environments[name]):
        raise NoLab(f"environment {name} is not installed; `tidegate install {name}` installs it")
    return folder


def _code(*sources: Path) -> Layer:
    def write(archive: tarfile.TarFile) -> None:
        for source in sources:
            archive.add(source, f"{_CODE}/{source.name}", filter=_needed)

    return layer(write)


def _packages(name: str) -> Layer:
    """The packages of an environment, with the shared libraries of this machine that they need."""
    found = environment(name) / PACKAGES

    def write(archive: tarfile.TarFile) -> None:
        archive.add(found, _OTHERS, filter=_needed)
        add_libraries(archive, sorted(found.rglob("*.so*")))

    return layer(write)


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """All but what installs and tests. Whole seconds, which Python compares with its compiled code, need one header less."""
    parts = entry.name.split("/")
    if "pip" in parts or ("tests" in parts and "numpy" not in parts):  # of which numpy's are imported
        return None
    entry.mtime = int(entry.mtime)
    return root_owned(entry)
