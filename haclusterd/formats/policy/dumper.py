"""YAML as text: scalars as they are spelled, short mappings and lists on one line, no anchors."""

from collections.abc import Mapping, Sequence

import yaml

_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "timestamp"))
"""Of what YAML takes for these, reading takes the spelling; so they need no quotes."""

Tree = str | None | Sequence["Tree"] | Mapping[str, "Tree"]


class Inline(dict[str, "Tree"]):
    """A mapping to be written on one line."""


class InlineList(list["Tree"]):
    """A list to be written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes texts as they are spelled, without anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  -- PyYAML's signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002  -- PyYAML's
        super().increase_indent(flow, indentless=False)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    detected = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # PyYAML's stubs
    # What has a colon is put in quotes inside { }, and then a tag would be written beside it.
    tag = detected if detected in _PLAIN_TAGS and ":" not in text else "tag:yaml.org,2002:str"
    # Line separators of Unicode would be folded in any other style.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar(tag, text, style=style)


def _represent_inline(dumper: _Dumper, mapping: Inline) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping.items(), flow_style=True)


def _represent_inline_list(dumper: _Dumper, items: InlineList) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(Inline, _represent_inline)
_Dumper.add_representer(InlineList, _represent_inline_list)


def dump(document: Mapping[str, Tree]) -> str:
    """Write a document."""
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


def escaped(text: str) -> str:
    """Write a value so that nothing in it is taken for a variable."""
    return text.replace("${", "$${")


def given(values: Mapping[str, Tree]) -> dict[str, Tree]:
    """Leave out what is None."""
    return {key: value for key, value in values.items() if value is not None}


def flag(value: bool | None) -> str | None:
    """Write a boolean that may be left open."""
    return None if value is None else str(value).lower()


def text(value: str | None) -> str | None:
    """Write a text that may be absent."""
    return None if value is None else escaped(value)
