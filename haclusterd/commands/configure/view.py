"""What of a configuration is shown: some of its objects, with secrets hidden; and such a text read again."""

from collections.abc import Collection, Mapping
from difflib import unified_diff
from fnmatch import fnmatchcase
from typing import TypeVar

from haclusterd.commands.configure.dependants import TOPOLOGY
from haclusterd.formats.crm.writer import Arrangement
from haclusterd.formats.crm.writer import show as show_crm
from haclusterd.model.agents import AgentFacts
from haclusterd.model.configuration import Alert, AttributeSet, Configuration, Operation, Primitive, Resource, Template
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import dataclass, replace
from haclusterd.model.secrets import is_reference
from haclusterd.model.words import HIDDEN
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.places import Places

Blocks = tuple[AttributeSet, ...]
OBSCURED = ("passw*", "*_passw*", "*secret*", "*_token", "community", "login_pass*")
"""Parameters whose values are secrets, whatever the agent says of them."""


def ids_of(configuration: Configuration) -> tuple[str, ...]:
    """Return every id and name that can be asked for."""
    sets = (*configuration.properties, *configuration.resource_defaults, *configuration.operation_defaults)
    objects = (*configuration.nodes, *configuration.resources, *configuration.templates, *configuration.tags,
               *configuration.constraints, *configuration.alerts,
               *configuration.acl_roles, *configuration.acl_targets, *configuration.acl_groups,
               *([TOPOLOGY] if configuration.fencing_levels else []))  # fmt: skip
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
        alerts={key: each for key, each in configuration.alerts.items() if key in ids},
        acl_roles={key: each for key, each in configuration.acl_roles.items() if key in ids},
        acl_targets={key: each for key, each in configuration.acl_targets.items() if key in ids},
        acl_groups={key: each for key, each in configuration.acl_groups.items() if key in ids},
    )


def masked(
    configuration: Configuration, agents: Mapping[str, AgentFacts] | None, patterns: tuple[str, ...] = ()
) -> Configuration:
    """Return the configuration with secrets hidden, and parameters that fit a pattern; it must not be loaded again."""
    resources = {
        key: _masked(each, agents or {}, patterns) if isinstance(each, Primitive) else each
        for key, each in configuration.resources.items()
    }
    templates = {key: _masked(each, agents or {}, patterns) for key, each in configuration.templates.items()}
    alerts = {key: _masked_alert(each, (*OBSCURED, *patterns)) for key, each in configuration.alerts.items()}
    return replace(configuration, resources=resources, templates=templates, alerts=alerts)


def shown(name: str, value: str, private: Collection[str] = ()) -> str:
    """Return the value of a parameter, hidden if it is a secret, or the agent calls it `private`."""
    names = (*OBSCURED, *(each.lower() for each in private))
    return HIDDEN if value and _is_secret(name, names) and not is_reference(value) else value


def unified(
    old: Configuration, new: Configuration, versions: tuple[int, int], agents: Mapping[str, AgentFacts] | None
) -> list[str]:
    """Return the lines of the unified difference as crm statements, with secrets hidden.

    A changed secret alone shows no line.
    """
    before, after = (
        show_crm(masked(each, agents), arrangement=Arrangement.DOCUMENT).splitlines() for each in (old, new)
    )
    return list(unified_diff(before, after, f"version {versions[0]}", f"version {versions[1]}", lineterm="", n=2))


def revealed(
    configuration: Configuration, before: Configuration, places: Places
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Put the values that objects had before where asterisks stand for them; each is named.

    So what `show` prints can be edited and loaded without a fence device losing its password. Asterisks without a value
    before stay, and verification refuses them.
    """
    reports: list[ReportItem] = []
    revealing = _Revealing(places, reports)
    resources: dict[ResourceId, Resource] = {}
    for id_, each in configuration.resources.items():
        was = before.resources.get(id_)
        resources[id_] = each
        if isinstance(each, Primitive) and isinstance(was, Primitive) and each.agent == was.agent:
            resources[id_] = _revealed(each, was, "resource", revealing)
    templates = {}
    for id_, template in configuration.templates.items():
        old = before.templates.get(id_)
        is_same = old is not None and old.agent == template.agent
        templates[id_] = _revealed(template, old, "template", revealing) if old and is_same else template
    alerts = {}
    for name, alert in configuration.alerts.items():
        earlier = before.alerts.get(name)
        is_same = earlier is not None and earlier.path == alert.path
        alerts[name] = _revealed_alert(alert, earlier, revealing) if earlier and is_same else alert
    return replace(configuration, resources=resources, templates=templates, alerts=alerts), tuple(reports)


@dataclass(frozen=True, slots=True)
class _Revealing:
    """Puts known values in the place of asterisks, and reports each."""

    places: Places
    reports: list[ReportItem]

    def blocks(self, blocks: Blocks, known: Blocks, where: str, path: tuple[str, ...]) -> Blocks:
        """Return the blocks with the values that were known; `path` leads to where they are in the text."""
        values = {name: text for block in known for name, text in block.pairs}
        values |= {f"{block.id} {name}": text for block in known for name, text in block.pairs}
        made = []
        for block in blocks:
            pairs = dict(block.pairs)
            for name in [name for name, text in block.pairs if text == HIDDEN]:
                found = values.get(f"{block.id} {name}", values.get(name, HIDDEN))
                if found != HIDDEN:
                    pairs[name] = found
                    place = self.places.find(*path, name)
                    self.reports.append(report(Code.SECRET_KEPT, place=place, name=f"{where}: {name}"))
            made.append(replace(block, pairs=tuple(pairs.items())))
        return tuple(made)


def _revealed_alert(new: Alert, old: Alert, revealing: _Revealing) -> Alert:
    known = {each.id: each for each in old.recipients}
    recipients = tuple(
        replace(each, parameters=revealing.blocks(each.parameters, known[each.id].parameters, each.id,
                                                  ("alert", new.id, "recipient", str(number), "attributes")))
        if each.id in known else each
        for number, each in enumerate(new.recipients)
    )  # fmt: skip
    own = ("alert", new.id, "attributes")
    parameters = revealing.blocks(new.parameters, old.parameters, new.id, own)
    return replace(new, parameters=parameters, recipients=recipients)


_Holder = TypeVar("_Holder", Primitive, Template)


def _revealed(new: _Holder, old: _Holder, kind: str, revealing: _Revealing) -> _Holder:
    own: tuple[str, ...] = (kind, new.id)
    by_id = {each.id: each for each in old.operations}
    operations = tuple(
        replace(each, parameters=revealing.blocks(each.parameters, by_id[each.id].parameters, f"{new.id}: {each.name}",
                                                  (*own, "operation", str(index), "params")))
        if each.id in by_id else each
        for index, each in enumerate(new.operations)
    )  # fmt: skip
    parameters = revealing.blocks(new.parameters, old.parameters, new.id, (*own, "params"))
    return replace(new, parameters=parameters, operations=operations)


def _masked_alert(alert: Alert, private: tuple[str, ...]) -> Alert:
    recipients = tuple(replace(each, parameters=_hidden(each.parameters, private)) for each in alert.recipients)
    return replace(alert, parameters=_hidden(alert.parameters, private), recipients=recipients)


def _masked(holder: _Holder, agents: Mapping[str, AgentFacts], patterns: tuple[str, ...]) -> _Holder:
    """Hide the values of private parameters, of the agent and of its operations."""
    facts: AgentFacts = agents.get(str(holder.agent), AgentFacts())
    private = (*OBSCURED, *patterns, *(name.lower() for name, each in facts.parameters.items() if each.is_private))
    return replace(
        holder,
        parameters=_hidden(holder.parameters, private),
        operations=tuple(_hidden_operation(each, private) for each in holder.operations),
    )


def _hidden_operation(operation: Operation, private: tuple[str, ...]) -> Operation:
    return replace(operation, parameters=_hidden(operation.parameters, private))


def _hidden(sets: tuple[AttributeSet, ...], private: tuple[str, ...]) -> tuple[AttributeSet, ...]:
    return tuple(
        replace(block, pairs=tuple(
            (name, HIDDEN if _is_secret(name, private) and not is_reference(text) else text)
            for name, text in block.pairs
        ))
        for block in sets
    )


def _is_secret(name: str, private: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in private)
