"""YAML as Kubernetes reads it: times stay text, keys are text, and no key is given twice."""

import re
from collections.abc import Hashable
from typing import Any

import yaml

_NUMBERS = {
    "tag:yaml.org,2002:int": r"[-+]?(?:0b[01]+|0o?[0-7]+|0|[1-9][0-9]*|0x[0-9a-fA-F]+)",
    "tag:yaml.org,2002:float": r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)",
}
_MERGE = "tag:yaml.org,2002:merge"


class ManifestLoader(yaml.CSafeLoader):
    """Without YAML 1.1's times and its numbers to the base of 60, which turn ``12:30:00`` into 45000."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key has to be a text", key.start_mark)
            if key.value in seen and key.tag != _MERGE:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} is given twice", key.start_mark)
            seen.add(key.value)
        self.flatten_mapping(node)
        # The keys are made texts one by one: as Python sees it, 1 and true are the same key.
        return {_text(self.construct_object(key)): self.construct_object(value, deep) for key, value in node.value}


ManifestLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (*_NUMBERS, "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    ManifestLoader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), list("-+.0123456789"))


def _integer(loader: ManifestLoader, node: yaml.ScalarNode) -> int:
    text = node.value.lower()
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    if digits[:2] in ("0b", "0o", "0x"):
        return sign * int(digits, 0)
    return sign * int(digits, 8 if digits[0] == "0" and len(digits) > 1 else 10)


ManifestLoader.add_constructor("tag:yaml.org,2002:int", _integer)


def _text(key: Hashable) -> str:
    return str(key).lower() if isinstance(key, bool) else "null" if key is None else str(key)
