"""Kubernetes-shaped objects: keys, kinds, versions of objects, the store that facts fold to, and decisions about them."""

from kube.decisions import Decision, Mutation, Outcome, Verb
from kube.edits import Edit
from kube.keys import Key, Manifest, keys_of, kind_id
from kube.kinds import KINDS, KindInfo, UnknownKind, api_version_of, find_kind, is_namespaced, key_of
from kube.merge import merge, merge_conditions
from kube.objects import Object, from_manifest
from kube.runs import Events, are_alike, runs
from kube.store import Event, Store
from kube.times import parse_duration, parse_time, rfc3339, rfc3339_micro

__all__ = [
    "KINDS",
    "Decision",
    "Edit",
    "Event",
    "Events",
    "Key",
    "KindInfo",
    "Manifest",
    "Mutation",
    "Object",
    "Outcome",
    "Store",
    "UnknownKind",
    "Verb",
    "api_version_of",
    "are_alike",
    "find_kind",
    "from_manifest",
    "is_namespaced",
    "key_of",
    "keys_of",
    "kind_id",
    "merge",
    "merge_conditions",
    "parse_duration",
    "parse_time",
    "rfc3339",
    "rfc3339_micro",
    "runs",
]
