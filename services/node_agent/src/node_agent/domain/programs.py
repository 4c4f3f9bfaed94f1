"""Which program of this machine an image is, in the words of an image's own configuration: Entrypoint, Cmd, Env.

A node that runs processes fetches no image. A list of programs says what stands in for one: the first program with a pattern
that fits the image runs as the image would, with what the container adds to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kube import Manifest
from kube.images import image_fits


class ProgramError(ValueError):
    """A program that cannot be read, with the key that is wrong."""


@dataclass(frozen=True, slots=True)
class Program:
    """What the images that fit ``images`` are. Words may hold ``{names}`` of places (see ``filled``).

    A pattern is a shell's, and fits an image with its tag or without. ``environment`` names a folder that has to be there.
    ``path`` are folders in which programs are looked for first.
    """

    name: str
    images: tuple[str, ...]
    environment: str = ""
    entrypoint: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Program":
        """Raises ProgramError."""
        if not isinstance(given, Mapping) or not given.get("name"):
            raise ProgramError(f"a program has a name: {given!r}")
        name = str(given["name"])
        unknown = sorted(given.keys() - set(cls.__slots__))
        if unknown:
            raise ProgramError(f"program {name}: unknown keys {', '.join(unknown)}")
        images = _words(name, "images", given.get("images"))
        if not images:
            raise ProgramError(f"program {name}: images is empty, so it stands in for none")
        env = given.get("env") or {}
        if not isinstance(env, Mapping):
            raise ProgramError(f"program {name}: env is no mapping of names to values")
        entrypoint, args, path = (_words(name, key, given.get(key)) for key in ("entrypoint", "args", "path"))
        variables = {str(key): str(value) for key, value in env.items()}
        return cls(name, images, str(given.get("environment") or ""), entrypoint, args, variables, path)

    def fits(self, image: str) -> bool:
        """Whether it stands in for ``image``."""
        return image_fits(image, self.images)


def program_of(programs: Iterable[Program], image: str) -> Program | None:
    """The first that stands in for ``image``."""
    return next((one for one in programs if one.fits(image)), None)


def command_of(program: Program | None, container: Manifest) -> list[str]:
    """The words that run ``container``, as Kubernetes puts them together from its own and the image's; may be empty."""
    own, args = container.get("command"), container.get("args")
    if own:
        return [str(word) for word in (*own, *(args or ()))]
    if program is None:
        return []
    return [*program.entrypoint, *(map(str, args) if args else program.args)]


def filled(text: str, places: Mapping[str, str]) -> str:
    """``text`` with the ``{name}`` of each place replaced; other braces stay."""
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def relocated(words: Sequence[str], folders: Mapping[str, str]) -> list[str]:
    """``words`` with paths below ``folders`` (mount path → folder) led to where the folders really are."""

    def lead(word: str) -> str:
        for path, folder in sorted(folders.items(), key=lambda pair: -len(pair[0])):
            head, found, tail = word.partition(path)
            if found and (not head or head[-1] in "=:,") and (not tail or tail[0] in "/:,"):
                return f"{head}{folder}{tail}"
        return word

    return [lead(word) for word in words]


def _words(name: str, key: str, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ProgramError(f"program {name}: {key} is no list")
    return tuple(str(word) for word in given)
