"""Where models of InferenceServices may be, and where their servers may find them."""

import re
from collections.abc import Iterable

from admission.domain.errors import FieldError
from kube import Manifest

_PLACE = re.compile(
    r"(s3|gs|hdfs|webhdfs|hf|modelscope|pvc|oci|oci\+native|oci\+fetch|https?|file)://.+|/.*|[\w.-]+(/[\w.-]+)*"
)


def check_place(path: str, uri: str | None) -> Iterable[FieldError]:
    """A place whose kind is known."""
    if uri and not _PLACE.fullmatch(uri):
        rule = "must be a path, or one of s3, gs, hdfs, webhdfs, hf, modelscope, pvc, oci, http, https and file"
        yield FieldError(path, uri, rule)


def check_places(path: str, component: Manifest) -> Iterable[FieldError]:
    """Several models of one component go to folders of their own below one."""
    places: list[Manifest] = component.get("storageUris") or []
    if places and (component.get("model") or {}).get("storageUri"):
        yield FieldError(f"{path}.storageUris", None, "cannot stand beside the model's storageUri; give one of them")
    folders = []
    for index, place in enumerate(places):
        yield from check_place(f"{path}.storageUris[{index}].uri", place.get("uri"))
        if not place.get("uri"):
            yield FieldError(f"{path}.storageUris[{index}].uri", None, "is required")
        folder = str(place.get("mountPath") or "/mnt/models")
        folders.append(folder)
        if not folder.startswith("/") or ".." in folder.split("/") or not folder.strip("/"):
            yield FieldError(
                f"{path}.storageUris[{index}].mountPath", folder, "must be an absolute path below / without .."
            )
    if len({folder.strip("/").partition("/")[0] for folder in folders}) > 1:
        yield FieldError(
            f"{path}.storageUris", None, f"{', '.join(folders)}: must have a folder in common that is not /"
        )
    if len(set(folders)) < len(folders):
        yield FieldError(f"{path}.storageUris", None, "must go to folders of their own")
