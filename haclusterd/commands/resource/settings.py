"""Verbs that change settings of a resource: role, management, maintenance, meta-attributes, parameters, capacities.

A setting of a group or clone holds for everything in it: a part that has another value loses its own. A meta-attribute
of what is cloned is one of the clone, as with crm_resource, unless what is cloned has a value of its own.
"""

from collections.abc import Collection, Iterable

from haclusterd.commands.attribute_sets import with_value, without
from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.view import shown
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_node, find_resource, find_resources, parts_of, primitives_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.effects import effects
from haclusterd.commands.status.resource_state import instances, is_promotable
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AttributeSet, Clone, Configuration, NodeEntry, Primitive, Resource, effective
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import nearest
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.answers.resource import Setting
from haclusterd.verbs.arguments import Arguments

TARGET_ROLE = "target-role"
SET, DELETE, SHOW = "set", "delete", "show"

_SECTIONS = {"meta": "meta", "params": "parameters", "utilization": "utilization"}


def with_meta(configuration: Configuration, resources: Iterable[ResourceId], name: str, value: str) -> Configuration:
    """Give resources a meta-attribute; what they contain and says otherwise no longer says it."""
    changed = dict(configuration.resources)
    for resource in dict.fromkeys(meta_holder(configuration, each, name) for each in resources):
        found = changed[resource]
        meta = with_value(found.meta, owner=resource, section="meta", name=name, value=value)
        changed[resource] = replace(found, meta=meta)
        for part in parts_of(configuration, resource)[1:]:
            configured = effective(changed[part].meta).get(name, value)
            if configured.lower() != value.lower():
                changed[part] = replace(changed[part], meta=without(changed[part].meta, name))
    return replace(configuration, resources=changed)


def meta_holder(configuration: Configuration, resource: ResourceId, name: str) -> ResourceId:
    """Return whose meta-attribute is set where one of this resource is asked for: its clone's, or its own."""
    parent = configuration.parents().get(resource)
    if parent is None or not isinstance(configuration.resources[parent], Clone):
        return resource
    return resource if name in effective(configuration.resources[resource].meta) else parent


def promote(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Let instances of a promotable clone be promoted."""
    return _with_role(context, arguments, "Promoted", "may be promoted")


def demote(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Demote all instances of a promotable clone and keep them so."""
    return _with_role(context, arguments, "Unpromoted", "is to be demoted")


def _with_role(context: Context, arguments: Arguments, role: str, words: str) -> Outcome[Change]:
    found = find_resource(context, arguments.word("resource"))
    if isinstance(found, ReportItem):
        return refusal(found)
    configuration = context.cib.configuration
    primitives = primitives_of(configuration, found)
    if not any(is_promotable(configuration, primitive) for primitive in primitives):
        where = "promote" if role == "Promoted" else "demote"
        return refusal(report(Code.NOT_PROMOTABLE, severity=Severity.ERROR, where=where, id=found, word=role))
    top = configuration.top_of(found)
    is_wanted = role == "Promoted"

    def is_so(cib: Cib, _live: object) -> bool:
        promoted = [each for primitive in primitives for each in instances(cib, primitive) if each.is_promoted]
        return bool(promoted) is is_wanted

    return change(
        context,
        with_meta(configuration, (top,), TARGET_ROLE, role),
        done=f"{top} {words}",
        until=is_so,
        waiting_for=f"{top} to be {role.lower()}",
    )


def manage(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Let the cluster start and stop resources, or no longer."""
    value = "false" if arguments.flag("unmanage") else "true"
    done = "left alone by the cluster" if value == "false" else "managed by the cluster"
    return flagged(context, arguments.words("resources"), "is-managed", value, done)


def maintenance(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Leave a resource wholly alone, monitors too, or no longer."""
    is_on = arguments.word("state") != "off"
    done = "in maintenance: not even watched" if is_on else "out of maintenance"
    return flagged(context, (arguments.word("resource"),), "maintenance", "true" if is_on else "false", done)


def flagged(context: Context, words: tuple[str, ...], name: str, value: str, done: str) -> Outcome[Change]:
    """Give resources a meta-attribute that is true or false; `done` says what they are then."""
    found, unknown = find_resources(context, words)
    if unknown:
        return refusal(*unknown)
    new = with_meta(context.cib.configuration, found, name, value)
    return change(context, new, done=f"{', '.join(found)}: {done}")


def setting(context: Context, arguments: Arguments) -> Outcome[Setting | Change]:
    """Set, delete or show one meta-attribute, parameter or capacity of a resource (schema `haclusterd.setting/1`)."""
    found = find_resource(context, arguments.word("resource"))
    if isinstance(found, ReportItem):
        return refusal(found)
    section, name = arguments.word("section"), arguments.word("name")
    if not name and arguments.word("action") != SHOW:
        return refusal(report(Code.MISSING_ARGUMENT, verb="resource.setting", name="name", meaning="which one"))
    if arguments.word("action") == SET and arguments.values["value"] is None:
        meaning = f'{name} of {found} is set to what; "" is the empty value'
        return refusal(report(Code.MISSING_ARGUMENT, verb="resource.setting", name="VALUE", meaning=meaning))
    if section == "meta" and name:
        found = meta_holder(context.cib.configuration, found, name)
    resource = context.cib.configuration.resources[found]
    if section == "utilization" and not isinstance(resource, Primitive):
        return refusal(report(Code.BAD_ARGUMENT, name="resource", problem="only primitives use capacities"))
    blocks: tuple[AttributeSet, ...] = getattr(resource, _SECTIONS[section])
    if arguments.word("action") == SHOW:
        is_asked = section == "params" and name and name not in effective(blocks)
        said = _said_of_parameter(context, resource, name) if is_asked else ""
        return _shown(resource.id, section, name, blocks, said)
    new = _blocks(context, arguments, blocks, found, section)
    if new == blocks:
        return Outcome((report(Code.NOTHING_TO_DO, state="it is so already"),))
    changed = _put(context.cib.configuration, resource, section, new)
    outcome = change(context, changed, done=_summary(arguments, found, _private(context, resource)))
    if outcome.is_refused:
        return outcome
    return replace(outcome, reports=(*outcome.reports, *effects(context, outcome.commands)))


def _shown(
    owner: str, section: str, name: str, blocks: tuple[AttributeSet, ...], said: str = ""
) -> Outcome[Setting]:
    """Answer the values; `said`: what else is known of one that is not set."""
    values = effective(blocks)
    if name and name not in values:
        known = ", ".join(sorted(values)) or "none"
        remedy = "; ".join(filter(None, (said, f"those that are set: {known}")))
        return refusal(report(Code.NOT_SET, name=name, where=owner, remedy=remedy))
    shown = {key: value for key, value in values.items() if name in ("", key)}
    answer = Setting(of=owner, section=section, values=shown, name=name)
    return Outcome(answer=answer)


def _said_of_parameter(context: Context, resource: Resource, name: str) -> str:
    """Say what an agent has of a parameter that is not set: its default, or nothing by that name."""
    facts = (context.agents or {}).get(str(resource.agent)) if isinstance(resource, Primitive) else None
    if facts is None or not facts.parameters:
        return ""
    if name in facts.parameters:
        default = facts.parameters[name].default
        return f"the agent's default is {default}" if default else "the agent has no default"
    guess = nearest(name, facts.parameters)
    return f"the agent has no such parameter{f', did you mean {guess}?' if guess else ''}"


def _blocks(
    context: Context, arguments: Arguments, blocks: tuple[AttributeSet, ...], owner: str, section: str
) -> tuple[AttributeSet, ...]:
    name = arguments.word("name")
    if arguments.word("action") == DELETE:
        return without(blocks, name, keeps_empty=context.is_foreign)
    return with_value(blocks, owner=owner, section=section, name=name, value=arguments.word("value"))


def _private(context: Context, resource: Resource) -> Collection[str]:
    """Return the parameters whose values the agent calls private."""
    facts = (context.agents or {}).get(str(resource.agent)) if isinstance(resource, Primitive) else None
    return [name for name, each in facts.parameters.items() if each.is_private] if facts is not None else ()


def _summary(arguments: Arguments, owner: str, private: Collection[str] = ()) -> str:
    name = arguments.word("name")
    if arguments.word("action") == DELETE:
        return f"{owner}: {name} deleted"
    return f"{owner}: {name}={shown(name, arguments.word('value'), private)}"


def _put(
    configuration: Configuration, resource: Resource, section: str, blocks: tuple[AttributeSet, ...]
) -> Configuration:
    changed: Resource
    if section == "meta":
        changed = replace(resource, meta=blocks)
    elif section == "params":
        changed = replace(resource, parameters=blocks)
    else:
        assert isinstance(resource, Primitive)
        changed = replace(resource, utilization=blocks)
    return replace(configuration, resources={**configuration.resources, resource.id: changed})


def node_utilization(context: Context, arguments: Arguments) -> Outcome[Setting | Change]:
    """Set, delete or show one capacity of a node (schema `haclusterd.setting/1`)."""
    node = find_node(context, arguments.word("node"))
    if isinstance(node, ReportItem):
        return refusal(node)
    configuration = context.cib.configuration
    entry = configuration.nodes.get(node, NodeEntry(node))
    if not arguments.word("name") and arguments.word("action") != SHOW:
        return refusal(report(Code.MISSING_ARGUMENT, verb="node.utilization", name="name", meaning="which one"))
    if arguments.word("action") == SHOW:
        return _shown(node, "utilization", arguments.word("name"), entry.utilization)
    new = _blocks(context, arguments, entry.utilization, f"nodes-{node}", "utilization")
    if new == entry.utilization:
        return Outcome((report(Code.NOTHING_TO_DO, state="it is so already"),))
    nodes = {**configuration.nodes, node: replace(entry, utilization=new)}
    return change(context, replace(configuration, nodes=nodes), done=_summary(arguments, node))



VERBS = (
    carry_out_by("resource.promote", promote, answers(Change)),
    carry_out_by("resource.demote", demote, answers(Change)),
    carry_out_by("resource.manage", manage, answers(Change)),
    carry_out_by("resource.maintenance", maintenance, answers(Change)),
    carry_out_by("resource.setting", setting, answers(Setting, Change)),
    carry_out_by("node.utilization", node_utilization, answers(Setting, Change)),
)
