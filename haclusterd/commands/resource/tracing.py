"""`resource trace` and `untrace`: agents of class ocf write what they do into files, for chosen operations.

Source: resource-agents, "ocf-shellfuncs" (trace_ra, trace_dir); crmsh 4.4, "resource trace".
"""

from haclusterd.commands.attribute_sets import with_value, without
from haclusterd.commands.configure.change import change
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_resource, primitives_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.status.resource_state import is_promotable
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.formats.generated_ids import operation_base
from haclusterd.model import durations
from haclusterd.model.configuration import Configuration, Operation, Primitive
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import replace
from haclusterd.model.secrets import is_reference
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.arguments import Arguments

TRACE, DIRECTORY = "trace_ra", "trace_dir"
PROBE = "probe"


def trace(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Let operations be traced, or no longer."""
    found = find_resource(context, arguments.word("resource"))
    if isinstance(found, ReportItem):
        return refusal(found)
    configuration = context.cib.configuration
    primitives = [each for name in primitives_of(configuration, found)
                  if isinstance(each := configuration.resources[name], Primitive)]  # fmt: skip
    foreign = [each.id for each in primitives if each.agent.standard != "ocf"]
    if foreign:
        problem = f"{', '.join(foreign)}: only agents of class ocf can be traced"
        return refusal(report(Code.BAD_ARGUMENT, name="resource", problem=problem))
    secretive = [each.id for each in primitives if not arguments.flag("end") and _has_secret(configuration, each)]
    if secretive:
        problem = f"{', '.join(secretive)}: the trace would contain secrets in plain text"
        return refusal(report(Code.REFUSED, problem=problem, remedy="trace it with another value, by crm agent run"))
    name, interval_ms = arguments.word("operation"), None
    if arguments.word("interval"):
        try:
            interval_ms = durations.parse(arguments.word("interval"))
        except ValueError as error:
            return refusal(report(Code.BAD_ARGUMENT, name="interval", problem=error))
    if name == PROBE:
        name, interval_ms = "monitor", 0
    is_on = not arguments.flag("end")
    resources = dict(configuration.resources)
    for each in primitives:
        wanted = _wanted(configuration, each, name, interval_ms) if is_on else each.operations
        only_traced = () if is_on else tuple(filter(_is_only_traced, wanted))
        resources[each.id] = replace(each, operations=tuple(
            _traced(operation, arguments.word("directory"), is_on=is_on)
            if name in ("", operation.name) and interval_ms in (None, operation.interval_ms) else operation
            for operation in wanted if operation not in only_traced or name not in ("", operation.name)
        ))  # fmt: skip
    new = replace(configuration, resources=resources)
    if new == configuration:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{found} is {'' if is_on else 'not '}traced"),))
    which = name or "every operation"
    where = arguments.word("directory") or "/var/lib/heartbeat/trace_ra on the node where it runs"
    done = f"{found}: {which} is traced into {where}" if is_on else f"{found}: {which} is no longer traced"
    return change(context, new, done=done)


def _has_secret(configuration: Configuration, primitive: Primitive) -> bool:
    whole = expanded(primitive, configuration)
    values = (value for block in whole.parameters for _, value in block.pairs)
    own = (value for operation in whole.operations for block in operation.parameters for _, value in block.pairs)
    return any(map(is_reference, (*values, *own)))


def _wanted(
    configuration: Configuration, primitive: Primitive, name: str, interval_ms: int | None
) -> tuple[Operation, ...]:
    """Return the operations with those that run although nothing is said of them, where they are to be traced."""
    names = {name} if name else {"start", "stop"}
    if not name and is_promotable(configuration, ResourceId(primitive.id)):
        names |= {"promote", "demote"}
    found = list(primitive.operations)
    for each in sorted(names):
        is_there = any(
            known.name == each and interval_ms in (None, known.interval_ms) for known in primitive.operations
        )
        if not is_there and not interval_ms:
            found.append(Operation(operation_base(primitive.id, each, ""), each))
    return tuple(found)


def _is_only_traced(operation: Operation) -> bool:
    """Tell whether nothing was said of an operation but that it is traced."""
    names = {name for block in operation.parameters for name, _ in block.pairs}
    return names == {TRACE} and replace(operation, parameters=()) == Operation(operation.id, operation.name)


def _traced(operation: Operation, directory: str, *, is_on: bool) -> Operation:
    blocks = operation.parameters
    if not is_on:
        return replace(operation, parameters=without(without(blocks, TRACE), DIRECTORY))
    values = {TRACE: "1", **({DIRECTORY: directory} if directory else {})}
    for name, value in values.items():
        blocks = with_value(blocks, owner=operation.id, section="params", name=name, value=value)
    return replace(operation, parameters=blocks)


VERBS = (carry_out_by("resource.trace", trace, answers(Change)),)
