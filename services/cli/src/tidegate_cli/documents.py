"""Manifests from files, folders and standard input, each with the place that it was read from."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import yaml

from kube import Manifest
from kube.limits import MOST_OBJECT_BYTES
from tidegate_cli.document_size import TooLarge, check_expansion, count_values, read_content
from tidegate_cli.manifest_loader import ManifestLoader

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest. ``number`` counts the documents of its file from 1; ``line`` is where it begins."""

    manifest: Manifest
    source: str
    number: int
    line: int

    @property
    def place(self) -> str:
        """``jobs.yaml, document 2, line 14``."""
        return f"{self.source}, document {self.number}, line {self.line}"


class Unreadable(Exception):
    """Files that hold no manifests; ``problems`` has a line for each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def read_documents(names: Iterable[str]) -> list[Document]:
    """All manifests of the files and folders ``names`` (``-``: standard input), lists taken apart.

    Raises Unreadable with all that is wrong, in all of the files.
    """
    documents: list[Document] = []
    problems: list[str] = []
    for name in names:
        for source, text in _texts(name, problems):
            try:
                documents += parse_documents(source, text)
            except Unreadable as error:
                problems += error.problems
    if problems:
        raise Unreadable(problems)
    return documents


def parse_documents(source: str, text: str) -> list[Document]:
    """The manifests in ``text``, YAML or JSON. Raises Unreadable."""
    parsed = _parse_json(source, text) if text.lstrip()[:1] == "{" else _parse_yaml(source, text)
    problems = [problem for document in parsed if (problem := _problem(document))]
    if problems:
        raise Unreadable(problems)
    documents = [item for document in parsed for item in _items(document)]
    problems = [problem for document in documents if (problem := _problem(document))]
    if problems:
        raise Unreadable(problems)
    return documents


def _texts(name: str, problems: list[str]) -> Iterator[tuple[str, str]]:
    for path in _files(name, problems):
        source = "standard input" if path is None else str(path)
        try:
            yield source, read_content(path).decode()
        except TooLarge as error:
            problems.append(f"{source}: {error}")
        except UnicodeDecodeError as error:
            problems.append(f"{source}: not UTF-8 text, at byte {error.start}")
        except OSError as error:
            problems.append(f"{source}: {error.strerror}")


def _files(name: str, problems: list[str]) -> list[Path | None]:
    if name == STDIN:
        return [None]
    path = Path(name)
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not found:
        problems.append(f"{name}: no {', '.join(SUFFIXES)} files in this folder")
    return list(found)


def _parse_yaml(source: str, text: str) -> list[Document]:
    documents: list[Document] = []
    number, loader = 0, ManifestLoader("")
    try:
        count_values(text)
        loader = ManifestLoader(text)
        while loader.check_node():
            node: Any = loader.get_node()
            number += 1
            check_expansion(node)
            content = loader.construct_document(node)
            if content is not None:
                documents.append(Document(content, source, number, node.start_mark.line + 1))
    except yaml.MarkedYAMLError as error:
        raise Unreadable([_marked(source, error)]) from None
    except TooLarge as error:
        place = f"{source}, document {number}" if number else source
        raise Unreadable([f"{place}: {error}"]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable([f"{source}: {' '.join(str(error).split())}"]) from None
    except RecursionError:
        raise Unreadable([f"{source}: nested too deeply to be a manifest"]) from None
    finally:
        loader.dispose()
    return documents


def _marked(source: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
    return f"{place}: {error.problem or error.context}"


def _parse_json(source: str, text: str) -> list[Document]:
    """One JSON object after the other; what begins like JSON but is none may still be YAML's inline form."""
    decoder = json.JSONDecoder()
    documents: list[Document] = []
    position = _skip(text, 0)
    try:
        while position < len(text):
            content, end = decoder.raw_decode(text, position)
            documents.append(Document(content, source, len(documents) + 1, text.count("\n", 0, position) + 1))
            position = _skip(text, end)
    except json.JSONDecodeError as error:
        try:
            return _parse_yaml(source, text)
        except Unreadable:
            raise Unreadable([f"{source}:{error.lineno}:{error.colno}: {error.msg}"]) from None
    except RecursionError:
        raise Unreadable([f"{source}: nested too deeply to be a manifest"]) from None
    return documents


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _items(document: Document) -> list[Document]:
    """The objects of a ``List``; other documents as they are."""
    if _is_list(document.manifest):
        return [replace(document, manifest=item) for item in document.manifest["items"]]
    return [document]


def _is_list(manifest: Manifest) -> bool:
    return str(manifest.get("kind", "")).endswith("List") and isinstance(manifest.get("items"), list)


def _problem(document: Document) -> str:
    """Why a document is no manifest at all; whether it is a right one is for the server to say."""
    manifest: Any = document.manifest
    if not isinstance(manifest, dict):
        return f"{document.place}: a manifest is a mapping with apiVersion, kind and metadata, not {_kind_of(manifest)}"
    missing = [name for name in ("apiVersion", "kind") if not isinstance(manifest.get(name), str)]
    if missing:
        return f"{document.place}: {' and '.join(missing)} missing; each manifest says what it is"
    if not isinstance(manifest.get("metadata", {}), dict):
        return f"{document.place}: metadata is to be a mapping, not {_kind_of(manifest['metadata'])}"
    return _unsendable(document)


def _unsendable(document: Document) -> str:
    try:
        size = len(orjson.dumps(document.manifest))
    except TypeError as error:
        return f"{document.place}: has a value that JSON cannot hold: {error}"
    if size <= MOST_OBJECT_BYTES or _is_list(document.manifest):
        return ""
    return f"{document.place}: has {size:,} bytes; an object may have at most {MOST_OBJECT_BYTES:,}"


def _kind_of(value: object) -> str:
    names = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false"}
    return names.get(type(value), "nothing")
