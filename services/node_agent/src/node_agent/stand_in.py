"""The program of this machine that stands in for a container's image: its words, its variables, what has to be there."""

from collections.abc import Callable

from kube import Manifest
from kube.environment import containers
from node_agent.domain.containers import Container
from node_agent.domain.programs import Program, command_of, filled, program_of
from node_agent.needs import NeverPossible, NotYet
from node_agent.program_list import INSTALLED, places, reach
from node_agent.settings import AgentSettings

IN_PLACE_OF = "tidegate.dev/ImagesInForce"
"""The condition of a pod that says which programs run in place of its images."""


class StandIn:
    """Stands in for the images of one pod, by the agent's list of programs."""

    def __init__(self, settings: AgentSettings, pod: Callable[[], Manifest]) -> None:
        self._settings, self._pod = settings, pod

    def program(self, container: Manifest) -> Program | None:
        """The one for the container's image, if there is any."""
        return program_of(self._settings.programs, str(container.get("image") or ""))

    def check(self, container: Container, manifest: Manifest) -> None:
        """Raises NeverPossible for an image that nothing stands in for, NotYet for a program that is not installed yet."""
        image, program = str(manifest.get("image") or ""), self.program(manifest)
        if manifest.get("command"):
            return
        who = f"container {container.name}, image {image!r}"
        if program is None:
            raise NeverPossible(
                "ImageNotRunnable",
                f"{container.field}.command is not set ({who}): this node runs processes of the machine, not images, and no "
                "program stands in for this one: name the command, or add the image to the file of the setting "
                "node_agent.programs (docs/serving.md)",
            )
        if program.environment and not (self._settings.environments / program.environment / INSTALLED).is_file():
            raise NotYet(
                "ProgramNotInstalled",
                f"{container.field} ({who}): the program {program.name} stands in for this image, and its environment is not "
                f"there: run `tidegate install {program.environment}`",
                again=True,
            )
        if not self.words(manifest):
            raise NeverPossible(
                "ImageNotRunnable",
                f"{container.field}.args is not set ({who}): the program {program.name} stands in for this image, whose "
                "arguments name what runs",
            )

    def words(self, container: Manifest) -> list[str]:
        """The command and its arguments."""
        program = self.program(container)
        found = command_of(program, container)
        if program is None or container.get("command"):
            return found
        known = self._places(program)
        own = len(program.entrypoint) if container.get("args") else len(found)
        return [filled(word, known) if place < own else word for place, word in enumerate(found)]

    def over(self, base: dict[str, str], container: Manifest) -> dict[str, str]:
        """``base`` with what the image brings laid over it."""
        program = self.program(container)
        if program is None:
            return base
        known = self._places(program)
        found = base | {name: filled(value, known) for name, value in program.env.items()}
        path = [filled(folder, known) for folder in program.path]
        return found | {"PATH": ":".join([*path, found["PATH"]])}

    def reach(self, container: Manifest) -> list[str]:
        """The paths that its user has to get to."""
        program = self.program(container)
        return reach(self._settings.environments, program.environment) if program is not None else []

    def note(self) -> dict[str, str]:
        """A condition of the pod that says what runs in place of which image."""
        found = [(one, self.program(one)) for one in containers(self._pod()) if not one.get("command")]
        said = [
            f"container {one.get('name')}: program {program.name} of this machine runs in place of {one.get('image')}"
            for one, program in found
            if program is not None
        ]
        return {IN_PLACE_OF: "; ".join(said)} if said else {}

    def _places(self, program: Program) -> dict[str, str]:
        address = str((self._pod().get("status") or {}).get("podIP") or "")
        return places(self._settings.environments, program.environment, address, self._settings.inference_gateway)
