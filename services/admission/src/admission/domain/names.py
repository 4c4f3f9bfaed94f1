"""The rules that names, labels and their like follow in Kubernetes (RFC 1123, RFC 1035, qualified names)."""

import re
from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.shapes import entry

_LABEL_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENVIRONMENT = re.compile(r"[ -<>-~]+")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def dns_label(path: str, name: str) -> Iterable[FieldError]:
    """RFC 1123 label: at most 63 of a-z, 0-9 and "-", a letter or digit first and last."""
    if len(name) > 63 or not _LABEL_1123.fullmatch(name):
        yield FieldError(
            path,
            name,
            "must be a DNS label: 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit",
        )


def dns_1035_label(path: str, name: str, longest: int = 63) -> Iterable[FieldError]:
    """RFC 1035 label: like a DNS label, but it starts with a letter, so that it can be a host and Service name."""
    if len(name) > longest or not _LABEL_1035.fullmatch(name):
        yield FieldError(
            path,
            name,
            f"must be a name that can be a host name: 1 to {longest} lower-case letters, digits or '-', "
            "starting with a letter and ending with a letter or digit",
        )


def dns_subdomain(path: str, name: str) -> Iterable[FieldError]:
    """RFC 1123 subdomain: DNS labels joined by dots, at most 253 characters."""
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        yield FieldError(
            path,
            name,
            "must be a DNS subdomain: at most 253 lower-case letters, digits, '-' or '.', "
            "starting and ending with a letter or digit",
        )


def qualified_name(path: str, name: str) -> Iterable[FieldError]:
    """A label key: an optional DNS subdomain and "/", then at most 63 letters, digits, "-", "_" or "."."""
    prefix, slash, own = name.rpartition("/")
    if len(own) > 63 or not _QUALIFIED.fullmatch(own) or (slash and not _SUBDOMAIN.fullmatch(prefix)):
        yield FieldError(
            path, name, "must be a qualified name such as app or example.com/app, at most 63 after the '/'"
        )


def labels(path: str, given: dict[str, str]) -> Iterable[FieldError]:
    """Label keys are qualified names, values at most 63 letters, digits, "-", "_" or "."."""
    for key, value in given.items():
        yield from qualified_name(path, key)
        if value and (len(value) > 63 or not _QUALIFIED.fullmatch(value)):
            yield FieldError(
                entry(path, key), value, "must be empty or at most 63 letters, digits, '-', '_' or '.' (a label value)"
            )


def environment_name(path: str, name: str) -> Iterable[FieldError]:
    """The name of an environment variable: printable, without "="."""
    if not _ENVIRONMENT.fullmatch(name):
        yield FieldError(path, name, "must be the name of an environment variable, without '='")


def data_key(path: str, name: str) -> Iterable[FieldError]:
    """The key of a ConfigMap or Secret, which may become a file name."""
    if len(name) > 253 or not _DATA_KEY.fullmatch(name) or name in (".", ".."):
        yield FieldError(path, name, "must be at most 253 letters, digits, '-', '_' or '.'")


def distinct(path: str, given: Iterable[str], what: str) -> Iterable[FieldError]:
    """An error for each name that occurs before in ``given``; ``path`` holds ``{}`` for the index."""
    seen: set[str] = set()
    for index, name in enumerate(given):
        if name and name in seen:
            yield FieldError(path.format(index), name, f"is the name of two {what}; give each a name of its own")
        seen.add(name)
