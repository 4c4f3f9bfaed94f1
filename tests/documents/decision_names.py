"""The names that services give to their decisions, read from the source: where a decision is made, or its headline said.

A name is a text, a constant of the module, one of several in a conditional, or a text with parts that only a run fills in
(``Job{phase}``): such a one is a pattern.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HEADLINE_ARGUMENTS = 3
"""``say(name, reason, message)`` names the decision that is being gathered."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name as the source has it. ``pattern`` is a regular expression where part of it is filled in by a run."""

    service: str
    place: str
    text: str = ""
    pattern: str = ""

    def fits(self, name: str) -> bool:
        """Whether a decision called ``name`` may come from this place."""
        return name == self.text or bool(self.pattern and re.fullmatch(self.pattern, name))


class Unreadable(Exception):
    """The name of a decision cannot be read from the source; the text says where."""


def names_in(services: Path) -> list[Name]:
    """Every name in the pure cores of the services below the folder ``services``. Raises Unreadable."""
    found: list[Name] = []
    for file in sorted(services.glob("*/src/*/domain/**/*.py")):
        service = file.relative_to(services).parts[0]
        found += _names_of_file(service, file, str(file.relative_to(services)))
    return found


def _names_of_file(service: str, file: Path, place: str) -> Iterator[Name]:
    tree = ast.parse(file.read_text())
    constants = {**_imported(tree.body, file), **dict(_constants(tree.body))}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            argument = _name_argument(call)
            if argument is not None:
                where = f"{place}:{argument.lineno}"
                yield from _read(argument, function, constants, service, where)


def _constants(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                yield name, text
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=True):
                    if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                        yield target.id, str(value.value)


def _imported(body: Iterable[ast.stmt], file: Path) -> dict[str, str]:
    """The constants that a module takes from others of its service."""
    found: dict[str, str] = {}
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            package, *names = statement.module.split(".")
            root = next((folder for folder in file.parents if folder.name == package), None)
            module = root and root.joinpath(*names).with_suffix(".py")
            if module and module.exists():
                constants = dict(_constants(ast.parse(module.read_text()).body))
                found |= {
                    name.asname or name.name: constants[name.name] for name in statement.names if name.name in constants
                }
    return found


def _name_argument(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Name(id="Decision"), args=[first, *_]):
            return first
        case ast.Call(func=ast.Name(id="Decision"), keywords=keywords):
            return next((item.value for item in keywords if item.arg == "name"), None)
        case ast.Call(func=ast.Attribute(attr="say"), args=[first, _, _]):
            return first
    return None


def _read(
    value: ast.expr, function: ast.FunctionDef, constants: dict[str, str], service: str, where: str
) -> Iterator[Name]:
    match value:
        case ast.Constant(value=str(text)):
            # The cluster's own controllers use the words of decisions without deciding anything: they have no name.
            if text:
                yield Name(service, where, text)
        case ast.JoinedStr(values=parts):
            yield Name(service, where, pattern="".join(map(_part, parts)))
        case ast.IfExp(body=one, orelse=other):
            yield from _read(one, function, constants, service, where)
            yield from _read(other, function, constants, service, where)
        case ast.Name(id=name) if name in constants:
            yield Name(service, where, constants[name])
        case ast.Name(id=name):
            yield from _read_variable(name, function, constants, service, where)
        case _:
            raise Unreadable(f"{where}: the name of this decision is {ast.unparse(value)}")


def _part(part: ast.expr) -> str:
    return re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[A-Z][A-Za-z]*"


def _read_variable(
    name: str, function: ast.FunctionDef, constants: dict[str, str], service: str, where: str
) -> Iterator[Name]:
    found = False
    for statement in ast.walk(function):
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found = True
                yield from _read(value, function, constants, service, where)
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=target), *_])],
                value=ast.BoolOp(values=[_, ast.Tuple(elts=[value, *_])]),
            ) if target == name:
                # ``name, … = headline or ("Default", …)``: what the headline may be is read where it is said.
                found = True
                yield from _read(value, function, constants, service, where)
    if not found and name not in {argument.arg for argument in function.args.args}:
        raise Unreadable(f"{where}: nothing in {function.name}() says what {name} is")
    if not found:
        raise Unreadable(f"{where}: {function.name}() is handed the name of its decision")
