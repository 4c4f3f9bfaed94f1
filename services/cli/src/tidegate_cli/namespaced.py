"""Which namespace the manifests of files belong to when the command line names one."""

from collections.abc import Sequence
from dataclasses import replace

from kube import is_namespaced, kind_id
from tidegate_cli.documents import Document, Unreadable, read_documents
from tidegate_cli.session import Session


def documents_in(session: Session, files: Sequence[str]) -> list[Document]:
    """The documents of ``files``; those without a namespace get the session's.

    Raises Unreadable, too for a namespace in a file that is not the one given by ``-n``.
    """
    documents = read_documents(files)
    given = session.given_namespace
    problems = [
        f"{one.place}: its namespace is {named!r}, not the {given!r} of --namespace"
        for one in documents
        if given and (named := _metadata(one).get("namespace")) and named != given and _is_namespaced(one)
    ]
    if problems:
        raise Unreadable(problems)
    return [_placed(one, session.namespace) for one in documents]


def _placed(document: Document, namespace: str) -> Document:
    metadata = _metadata(document)
    if metadata.get("namespace") or not _is_namespaced(document):
        return document
    return replace(document, manifest={**document.manifest, "metadata": {**metadata, "namespace": namespace}})


def _is_namespaced(document: Document) -> bool:
    return is_namespaced(kind_id(document.manifest["apiVersion"], document.manifest["kind"]))


def _metadata(document: Document) -> dict[str, object]:
    return document.manifest.get("metadata") or {}
