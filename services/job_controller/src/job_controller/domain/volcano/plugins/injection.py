"""What plugins add to pods, and how it is laid over a pod spec without changing the parts that pods share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from job_controller.domain.volcano.spec import JobSpec, Task
from kube import Manifest, Object


@dataclass(frozen=True, slots=True)
class Injection:
    """Additions to a pod. ``env`` is for its containers, ``init_env`` for its init containers, ``mounts`` for both.

    ``fields`` are fields of the pod spec that are set where the user left them out; ``commands`` are by container.
    """

    env: tuple[Manifest, ...] = ()
    init_env: tuple[Manifest, ...] = ()
    ports: tuple[Manifest, ...] = ()
    mounts: tuple[Manifest, ...] = ()
    volumes: tuple[Manifest, ...] = ()
    init_containers: tuple[Manifest, ...] = ()
    fields: Manifest = field(default_factory=dict)
    commands: dict[str, list[str]] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


NOTHING = Injection()


@dataclass(frozen=True, slots=True)
class Site:
    """Where a plugin works: a job, and the arguments that the job gives it."""

    job: Object
    spec: JobSpec
    arguments: tuple[str, ...]

    def flag(self, name: str, default: str) -> str:
        """The value of ``--name=value`` or ``--name value``; a bare ``--name`` is ``true``."""
        found = default
        for place, word in enumerate(self.arguments):
            head, equals, value = word.partition("=")
            if head.lstrip("-") != name or not head.startswith("-"):
                continue
            following = self.arguments[place + 1] if place + 1 < len(self.arguments) else "-"
            found = value if equals else ("true" if following.startswith("-") else following)
        return found

    def switch(self, name: str, default: bool) -> bool:
        """The value of a flag that is on or off."""
        return self.flag(name, str(default).lower()).lower() in ("true", "1", "t")

    def host(self, task: Task, index: int) -> str:
        """The name under which the other pods of the job reach a pod: its host name and subdomain, or what they default to."""
        spec = task.pod_spec
        name = spec.get("hostname") or f"{self.job.name}-{task.name}-{index}"
        return f"{name}.{spec.get('subdomain') or self.job.name}"

    def hosts(self, task: Task | None) -> list[str]:
        """The hosts of all pods of a task, by index; none for a task that is not there."""
        return [self.host(task, index) for index in range(task.replicas)] if task else []


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a plugin does; each part does nothing where it is not given."""

    objects: Callable[[Site], list[Manifest]] = lambda site: []
    for_task: Callable[[Site, Task], Injection] = lambda site, task: NOTHING
    for_pod: Callable[[Site, Task, int], Injection] = lambda site, task, index: NOTHING


def variable(name: str, value: str) -> Manifest:
    """An environment variable."""
    return {"name": name, "value": value}


def together(parts: Sequence[Injection]) -> Injection:
    """Several injections as one, the later ones behind the earlier ones."""
    parts = [part for part in parts if part is not NOTHING]
    if len(parts) <= 1:
        return parts[0] if parts else NOTHING
    return Injection(
        env=tuple(item for part in parts for item in part.env),
        init_env=tuple(item for part in parts for item in part.init_env),
        ports=tuple(item for part in parts for item in part.ports),
        mounts=tuple(item for part in parts for item in part.mounts),
        volumes=tuple(item for part in parts for item in part.volumes),
        init_containers=tuple(item for part in parts for item in part.init_containers),
        fields={name: value for part in parts for name, value in part.fields.items()},
        commands={name: words for part in parts for name, words in part.commands.items()},
        annotations={name: text for part in parts for name, text in part.annotations.items()},
    )


def inject(spec: Manifest, what: Injection) -> Manifest:
    """``spec`` with the injection laid over it; parts that it does not touch stay the same objects."""
    if what is NOTHING:
        return spec
    result = dict(spec)
    for name, value in what.fields.items():
        if not result.get(name):
            result[name] = value
    if what.volumes:
        result["volumes"] = _with_named(spec.get("volumes"), what.volumes)
    if what.env or what.ports or what.mounts or what.commands:
        result["containers"] = [_container(item, what) for item in spec.get("containers") or ()]
    init = list(spec.get("initContainers") or ())
    if init and (what.init_env or what.mounts):
        init = [_init_container(item, what) for item in init]
        result["initContainers"] = init
    if what.init_containers:
        result["initContainers"] = [*init, *what.init_containers]
    return result


def _container(container: Manifest, what: Injection) -> Manifest:
    result = dict(container)
    if what.env:
        result["env"] = _with_named(container.get("env"), what.env)
    if what.ports:
        result["ports"] = _with_named(container.get("ports"), what.ports)
    if what.mounts:
        result["volumeMounts"] = [*(container.get("volumeMounts") or ()), *what.mounts]
    if (command := what.commands.get(str(container.get("name")))) is not None:
        result["command"] = command
        result.pop("args", None)
    return result


def _init_container(container: Manifest, what: Injection) -> Manifest:
    result = dict(container)
    if what.init_env:
        result["env"] = _with_named(container.get("env"), what.init_env)
    if what.mounts:
        result["volumeMounts"] = [*(container.get("volumeMounts") or ()), *what.mounts]
    return result


def _with_named(given: list[Manifest] | None, added: Sequence[Manifest]) -> list[Manifest]:
    """``given`` and behind it ``added``, which takes the place of what has its names."""
    names = {item.get("name") for item in added}
    return [*(item for item in given or () if item.get("name") not in names), *added]
