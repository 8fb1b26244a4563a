"""Blocks under rules on dates that nodes read without a plan: which there are, and what a configuration says by them.

A date is judged by a clock, and clocks differ; nodes also apply the log at different times. So no node judges such a
rule for itself. The DC does, and commits which blocks are in force (`machines.rule_judge`, safety.md §1). Plans,
pacers, fencing and `apply` go by that. Judged are properties, attributes of nodes, meta-attributes, defaults of
resources and parameters of fence devices, where the rule looks at dates only. Any other rule is the scheduler's alone,
and verification refuses there what is read without it (`commands.verify.ruled`).
"""

from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Any, TypeVar

from haclusterd.model.configuration import AttributeSet, Configuration, Primitive, Template
from haclusterd.model.records import replace
from haclusterd.model.rules import looks_at_dates_only
from haclusterd.model.templates import expanded

Blocks = tuple[AttributeSet, ...]
_Change = Callable[[str, Blocks], Blocks]
_Value = TypeVar("_Value")
_REMEMBERED = 64
"""Configurations whose answers are kept: a daemon has one or two, a simulation that of each node."""


class _Known:
    """What was found of the newest configurations, which are the same objects for as long as nothing is configured."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[Configuration, Mapping[str, AttributeSet]]] = {}
        self._judged: dict[tuple[int, tuple[str, ...]], tuple[Configuration, Configuration]] = {}

    def blocks(self, configuration: Configuration) -> Mapping[str, AttributeSet]:
        found = self._blocks.get(id(configuration))
        if found is None:
            if len(self._blocks) >= _REMEMBERED:
                self._blocks = {}
            found = self._blocks[id(configuration)] = (configuration, _collected(configuration))
        return found[1]

    def with_judged(self, configuration: Configuration, in_force: tuple[str, ...]) -> Configuration:
        found = self._judged.get((id(configuration), in_force))
        if found is None:
            if len(self._judged) >= _REMEMBERED:
                self._judged = {}
            found = configuration, _rebuilt(configuration, _settling(in_force))
            self._judged[id(configuration), in_force] = found
        return found[1]


_KNOWN = _Known()


def dated_blocks(configuration: Configuration) -> Mapping[str, AttributeSet]:
    """Return the blocks that are judged, by a key that names their place: `properties night`, `resource db meta m`."""
    return _KNOWN.blocks(configuration)


def with_judged(configuration: Configuration, in_force: tuple[str, ...]) -> Configuration:
    """Return a configuration as it holds while the named blocks are in force: these have no rule, the other judged
    ones are left out. The same object comes back for the same arguments."""
    if not dated_blocks(configuration):
        return configuration
    return _KNOWN.with_judged(configuration, in_force)


def possible_properties(configuration: Configuration) -> tuple[Blocks, ...]:
    """Return what a property may ever be read from: the blocks without rules, and each judged block alone."""
    blocks = [replace(block, rule=None) for block in configuration.properties if _is_judged(block)]
    return (configuration.properties, *((block,) for block in blocks))


def _is_judged(block: AttributeSet) -> bool:
    return block.rule is not None and looks_at_dates_only(block.rule)


def _collected(configuration: Configuration) -> Mapping[str, AttributeSet]:
    found: dict[str, AttributeSet] = {}
    if not _has_rules(configuration):
        return found

    def collect(place: str, blocks: Blocks) -> Blocks:
        found.update({_key(place, block): block for block in blocks if _is_judged(block)})
        return blocks

    _rebuilt(configuration, collect)
    return found


def _has_rules(configuration: Configuration) -> bool:
    """Look for any rule at all: most configurations have none, and some are large."""
    owners = (*configuration.resources.values(), *configuration.templates.values())
    nodes = configuration.nodes.values()
    places = ((configuration.properties, configuration.resource_defaults), (node.attributes for node in nodes))
    return any(
        block.rule is not None
        for blocks in (*chain(*places), *chain.from_iterable((each.meta, each.parameters) for each in owners))
        for block in blocks
    )


def _settling(in_force: Collection[str]) -> _Change:
    def settle(place: str, blocks: Blocks) -> Blocks:
        if not any(map(_is_judged, blocks)):
            return blocks
        return tuple(
            replace(block, rule=None) if _is_judged(block) else block
            for block in blocks
            if not _is_judged(block) or _key(place, block) in in_force
        )

    return settle


def _key(place: str, block: AttributeSet) -> str:
    return f"{place} {block.id}"


def _rebuilt(configuration: Configuration, change: _Change) -> Configuration:
    """Return a configuration with all blocks changed that nodes read without a plan; what is equal is not copied."""
    nodes = {
        name: _with(entry, attributes=change(f"node {name}", entry.attributes))
        for name, entry in configuration.nodes.items()
    }
    templates = {
        name: _of_owner("template", template, template.agent.standard, change)
        for name, template in configuration.templates.items()
    }
    resources = {}
    for name, resource in configuration.resources.items():
        standard = expanded(resource, configuration).agent.standard if isinstance(resource, Primitive) else ""
        resources[name] = _of_owner("resource", resource, standard, change)
    return _with(
        configuration,
        properties=change("properties", configuration.properties),
        resource_defaults=change("rsc_defaults", configuration.resource_defaults),
        nodes=_same(configuration.nodes, nodes),
        templates=_same(configuration.templates, templates),
        resources=_same(configuration.resources, resources),
    )


def _of_owner(kind: str, owner: Any, standard: str, change: _Change) -> Any:
    changed = {"meta": change(f"{kind} {owner.id} meta", owner.meta)}
    if isinstance(owner, Primitive | Template) and standard == "stonith":
        changed["parameters"] = change(f"{kind} {owner.id} params", owner.parameters)
    return _with(owner, **changed)


def _with(value: _Value, **fields: object) -> _Value:
    changed: dict[str, Any] = {name: each for name, each in fields.items() if getattr(value, name) is not each}
    found: Any = value
    return replace(found, **changed) if changed else value


def _same(before: Mapping[Any, _Value], after: Mapping[Any, _Value]) -> Mapping[Any, _Value]:
    return after if any(before[name] is not each for name, each in after.items()) else before
