"""Names of images: with a registry or without, with a tag, a digest or neither."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

STOOD_IN_FOR = "tidegate.dev/images"
"""The annotation of a node that runs processes: for images of which patterns programs of its machine stand in (a JSON list)."""
_DOCKER_HUB = "docker.io/"


def untagged(image: str) -> str:
    """``image`` without its digest and its tag."""
    name = image.partition("@")[0]
    head, colon, tag = name.rpartition(":")
    return head if colon and "/" not in tag else name


def image_fits(image: str, patterns: Iterable[str]) -> bool:
    """Whether any of ``patterns``, which are a shell's, fits ``image`` with its tag or without."""
    names = {one for full in (image, image.removeprefix(_DOCKER_HUB)) for one in (full, untagged(full))}
    return bool(image) and any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
