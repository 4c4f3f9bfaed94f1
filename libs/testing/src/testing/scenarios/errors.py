"""What can be wrong with a scenario file, said so that its writer finds the place."""


class ScenarioError(ValueError):
    """A scenario file that does not follow the format; the message names the file, the step and the key."""

    def within(self, place: str) -> "ScenarioError":
        """The same fault, told from one level further out."""
        return ScenarioError(f"{place}: {self}")
