"""What of a configuration is shown: some of its objects, with secrets hidden."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from haclusterd.commands.dependants import TOPOLOGY
from haclusterd.model.agents import AgentFacts
from haclusterd.model.configuration import AttributeSet, Configuration, Operation, Primitive, Resource, Template

HIDDEN = "******"
OBSCURED = ("passw*", "*_passw*", "*secret*", "*_token", "community", "login_pass*")
"""Parameters whose values are secrets, whatever the agent says of them."""


def ids_of(configuration: Configuration) -> tuple[str, ...]:
    """Return every id and name that can be asked for."""
    sets = (*configuration.properties, *configuration.resource_defaults, *configuration.operation_defaults)
    objects = (*configuration.nodes, *configuration.resources, *configuration.templates, *configuration.tags,
               *configuration.constraints, *([TOPOLOGY] if configuration.fencing_levels else []))  # fmt: skip
    return (*objects, *(block.id for block in sets))


def part_of(configuration: Configuration, ids: Collection[str]) -> Configuration:
    """Return the configuration with only these objects."""
    return Configuration(
        nodes={key: each for key, each in configuration.nodes.items() if key in ids},
        resources={key: each for key, each in configuration.resources.items() if key in ids},
        constraints={key: each for key, each in configuration.constraints.items() if key in ids},
        properties=tuple(block for block in configuration.properties if block.id in ids),
        resource_defaults=tuple(block for block in configuration.resource_defaults if block.id in ids),
        operation_defaults=tuple(block for block in configuration.operation_defaults if block.id in ids),
        templates={key: each for key, each in configuration.templates.items() if key in ids},
        tags={key: each for key, each in configuration.tags.items() if key in ids},
        fencing_levels=configuration.fencing_levels if TOPOLOGY in ids else (),
    )


def masked(configuration: Configuration, agents: Mapping[str, AgentFacts] | None) -> Configuration:
    """Return the configuration with secrets hidden; it must not be loaded again."""
    resources = {key: _masked(each, agents or {}) for key, each in configuration.resources.items()}
    templates = {key: _masked_template(each, agents or {}) for key, each in configuration.templates.items()}
    return replace(configuration, resources=resources, templates=templates)


def _masked_template(template: Template, agents: Mapping[str, AgentFacts]) -> Template:
    facts = agents.get(str(template.agent), AgentFacts())
    private = frozenset(name for name, each in facts.parameters.items() if each.is_private)
    return replace(
        template,
        parameters=_hidden(template.parameters, private),
        operations=tuple(_hidden_operation(each, private) for each in template.operations),
    )


def _masked(resource: Resource, agents: Mapping[str, AgentFacts]) -> Resource:
    if not isinstance(resource, Primitive):
        return resource
    facts = agents.get(str(resource.agent), AgentFacts())
    private = frozenset(name for name, each in facts.parameters.items() if each.is_private)
    return replace(
        resource,
        parameters=_hidden(resource.parameters, private),
        operations=tuple(_hidden_operation(each, private) for each in resource.operations),
    )


def _hidden_operation(operation: Operation, private: frozenset[str]) -> Operation:
    return replace(operation, parameters=_hidden(operation.parameters, private))


def _hidden(sets: tuple[AttributeSet, ...], private: frozenset[str]) -> tuple[AttributeSet, ...]:
    return tuple(
        replace(block, pairs=tuple((name, HIDDEN if _is_secret(name, private) else text) for name, text in block.pairs))
        for block in sets
    )


def _is_secret(name: str, private: frozenset[str]) -> bool:
    return name in private or any(fnmatchcase(name.lower(), pattern) for pattern in OBSCURED)
