"""A group of commands that are loaded when they are called, so that each starts fast."""

import difflib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

_ELSEWHERE = {
    "annotate": "write it into the manifest, and `tidegate apply -f FILE`",
    "attach": "`tidegate logs POD -f` shows what a pod writes",
    "config": "`--server`, `--token` and `--data-dir` say where Tidegate is; `tidegate whoami` who you are",
    "cordon": "apply the node with `spec.unschedulable: true`",
    "cp": "pods of this machine write below the data folder",
    "drain": "apply the node with `spec.unschedulable: true`, then `tidegate delete pods` on it",
    "edit": "`tidegate get KIND/NAME -o yaml > FILE`, change it, and `tidegate apply -f FILE`",
    "exec": "pods of this machine are its processes; `tidegate logs POD` shows what a pod writes",
    "label": "write it into the manifest, and `tidegate apply -f FILE`",
    "port-forward": "pods of this machine can be reached at their addresses: `tidegate get pods -o wide`",
    "replace": "`tidegate apply -f FILE --replace`",
    "rollout": "`tidegate get` and `tidegate describe deployment/NAME` show how far it is",
    "run": "write a Pod into a file, and `tidegate create -f FILE`",
    "taint": "apply the node with its `spec.taints`",
    "uncordon": "apply the node with `spec.unschedulable: false`",
}
"""Commands of kubectl that are none here, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its name, the module that has it under that name, and what the list of commands says of it."""

    name: str
    module: str
    summary: str
    section: str

    def load(self) -> click.Command:
        """The command itself."""
        command: Any = getattr(importlib.import_module(self.module), self.name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command


class LazyGroup(click.Group):
    """A group made of entries; listing them loads none."""

    def __init__(self, *arguments: Any, entries: Sequence[Entry], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.entries = {entry.name: entry for entry in entries}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        return entry.load() if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            if args[0] in _ELSEWHERE:
                ctx.fail(f"there is no command {args[0]!r} here: {_ELSEWHERE[args[0]]}")
            close = difflib.get_close_matches(args[0], self.entries, n=1)
            hint = f"; did you mean `tidegate {close[0]}`?" if close else "; `tidegate --help` lists the commands"
            ctx.fail(f"there is no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for entry in self.entries.values():
            sections.setdefault(entry.section, []).append((entry.name, entry.summary))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)
