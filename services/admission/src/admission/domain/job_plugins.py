"""The plugins of a Volcano Job: which there are, what they bring along, what they need."""

from collections.abc import Iterable, Mapping, Sequence

from admission.domain.errors import FieldError
from admission.domain.shapes import entry

# Plugin → the arguments that it knows.
PLUGINS: dict[str, tuple[str, ...]] = {
    "svc": ("publish-not-ready-addresses", "disable-network-policy", "inject-hosts-env"),
    "ssh": ("ssh-key-file-path", "ssh-private-key", "ssh-public-key", "ssh-port", "no-root"),
    "env": (),
    "pytorch": (
        "master", "worker", "port", "wait-master-enabled", "wait-master-timeout", "wait-master-image",
    ),
    "tensorflow": ("ps", "worker", "chief", "evaluator", "port"),
    "mpi": ("master", "worker", "port"),
    "ray": ("head", "headContainer", "worker", "workerContainer", "port", "dashboardPort", "clientPort"),
    "hcclrank": ("master", "worker"),
}  # fmt: skip
IMPLIED = {"tensorflow": ("svc",), "mpi": ("svc", "ssh"), "pytorch": ("svc",), "ray": ("svc",)}


def default_plugins(plugins: dict[str, list[str]]) -> None:
    """Add the plugins that others build on."""
    for name in [name for name in IMPLIED if name in plugins]:
        for implied in IMPLIED[name]:
            plugins.setdefault(implied, [])


def check_plugins(path: str, plugins: Mapping[str, Sequence[str]], tasks: Iterable[str]) -> Iterable[FieldError]:
    """Every plugin is known, and an MPI job has the task that its plugin takes for the master."""
    for name in plugins:
        if name not in PLUGINS:
            yield FieldError(entry(path, name), name, f"there is no job plugin {name}; known are {', '.join(PLUGINS)}")
    if "mpi" in plugins:
        master, names = argument(plugins["mpi"], "master", "master"), list(tasks)
        if master not in names:
            rule = f"the mpi plugin needs a master task named {master}; name a task so or pass --master=TASK"
            yield FieldError(entry(path, "mpi"), ", ".join(names) or None, rule)


def warn_plugins(path: str, plugins: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Arguments that a plugin does not know."""
    for name in plugins.keys() & PLUGINS.keys():
        for word in plugins[name]:
            flag = word.lstrip("-").partition("=")[0]
            if word.startswith("-") and flag not in PLUGINS[name]:
                yield f"{entry(path, name)}: the argument {word} is unknown and has no effect"


def argument(words: Sequence[str], name: str, default: str) -> str:
    """The value of the argument ``name`` among ``words``: ``--name=value`` or ``--name value``."""
    for index, word in enumerate(words):
        flag, equals, value = word.lstrip("-").partition("=")
        if flag == name and word.startswith("-"):
            return value if equals else (words[index + 1] if index + 1 < len(words) else default)
    return default
