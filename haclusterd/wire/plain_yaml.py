"""Plain YAML whose keys stand once: PyYAML's own loader keeps the last of two equal keys without a word."""

from collections.abc import Hashable
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """The loader of plain values that refuses a key which stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping; raise yaml.YAMLError with the place of a key that stands there already."""
        keys: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in keys:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value[:60]!r} stands twice", key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def load(text: str) -> Any:
    """Return one document; raise yaml.YAMLError."""
    return yaml.load(text, Loader=_Loader)
